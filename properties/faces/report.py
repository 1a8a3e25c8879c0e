"""Names of `marker_sim.report` that tests use."""

from marker_sim.report.ci import junit_xml, sarif_text, tell_github
from marker_sim.report.columns import read_parquet, write_parquet
from marker_sim.report.directory import newest_earlier, open_report
from marker_sim.report.notes import OWN_DEFECT, notes, walk_line
from marker_sim.report.page import render_curves, render_page
from marker_sim.report.pictures.charts import SLICES_MAX, heat_map, load_charts, load_slices
from marker_sim.report.pictures.picture import LANES_MAX, ROWS_MAX, lane_picture, picture
from marker_sim.report.scripts.issue import issue_text, told_of
from marker_sim.report.scripts.server_script import server_script
from marker_sim.report.scripts.table_script import script_of
from marker_sim.report.steps import sentence_of, steps_of, time_text
from marker_sim.report.table import merged, print_outcome
from marker_sim.report.verdict import VerdictOutcome, judge_campaign, without_option
from marker_sim.report.words import brief, plan_sentences, printable
from marker_sim.report.write import write_outcome, write_text

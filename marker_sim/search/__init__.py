"""Ways to make plans, run them and make failing ones small.

swarm.py      a seed -> a dense random plan
exhaustive.py every crash of the schedules in schedules.py, then every pair; crash_points.py finds them
shrink.py     a failing plan -> a smaller one that fails the same way
campaign.py   many seeds within a budget -> a Campaign
replay.py     a stored plan again
"""

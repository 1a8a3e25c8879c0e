"""Generated mutants: a developer's tool that hunts drawn changes of the reference, and of its server.

    python -m tools.generated_mutants 700 --seed 1                600 plans for each, or --runs N
    python -m tools.generated_mutants 50 --seed 1 --of serve      6 plans for each; one at a time, or --jobs N

__main__.py      the command
syntax.py        every change of a module's syntax tree
generated.py     changes drawn and hunted by the ordinary swarm; reviewed.toml: what survivors are
served.py        the same of the timeline server, hunted as processes that served_start.py starts
"""

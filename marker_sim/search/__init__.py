"""Makes plans, and makes failing plans smaller.

swarm.py         from a seed, a dense random plan of operations on marker directories; writes.py: of writes
merged_plans.py  several plans of the swarm as one, for servers in real time
hostile_plans.py requests that must be refused, and unusual names, before and after the death of a server
power_plans.py   losses of power, for servers that promise to survive them
wire_plans.py    connections that fail, between clients and servers or servers and object store
crowds.py        additional clients in such plans: crowds, frequent names, similar names, short scripts
site_faults.py   faults at named sites
scenarios.py     situations that independent draws seldom produce; scenarios_of_operations.py, scenarios_of_writes.py
seeds.py         the seed of each plan of a search, and the random numbers that a plan is drawn by
numbered_calls.py  numbered storage calls, what each can meet, and the order of a walk over them
orders/          the orders of the steps of a few writers, those that end alike once
walks.py         each storage call of a short workload of a real server, numbered and then failed or made its last
shrinking/       a failing plan made smaller
"""

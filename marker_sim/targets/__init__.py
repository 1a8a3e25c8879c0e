"""Systems under test that are processes of their own, one module for each kind; loading.py has those in Python."""

"""Enumerates the orders in which a few writers can make their steps.

partial_orders.py  those that can end differently, each once
"""

"""Runs at work: processes on this machine or on a cluster, and what they leave."""

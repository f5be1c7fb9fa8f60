# Two commands for everyone:
#   make demo                 HOAP-2 sways in simulation, its CoM and SESC are published
#   make demo ROBOT=talos     the same for another robot: a name or the path of a URDF
#   make test                 all tests
# Each does all the set-up that it needs.

ROBOT ?= hoap2
SECONDS ?= 20
OUT ?= out

.PHONY: help setup demo test lint bench clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

setup:
	@tools/setup.sh

demo: setup
	@tools/in_env python tools/demo.py "$(ROBOT)" --seconds $(SECONDS) --out "$(OUT)"

test: setup
	@tools/in_env python -m pytest $(PYTEST_ARGS)

lint: setup
	@tools/in_env ruff check .
	@tools/in_env ruff format --check .
	@tools/in_env mypy

bench: setup
	@for name in sesc_accuracy sesc_speed node_latency; do \
	  tools/in_env python benchmarks/$$name.py || exit 1; done

clean:
	rm -rf .venv build install log out

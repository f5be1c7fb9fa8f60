# Two commands for everyone:
#   make demo                 HOAP-2 falls by a wrong URDF, is measured, and stands by the corrected one
#   make demo ROBOT=talos     the same for another robot: a name or the path of a URDF; every demo
#                             takes it. robot.yaml beside robot.urdf is found, or CONFIG=robot.yaml
#   make demo-trot            a quadruped trots, 20 kg drop on it; also ROBOT=anymal FEEDBACK=true
#   make demo-identify        HOAP-2's URDF is wrong; postures tell where its links' CoMs are
#   make demo-identify-walk   a Go2 with a box on its back trots; torques and an IMU correct its URDF
#   make demo-checkup         a G1 leans: which of seven causes is it, by a sway without foot sensors
#   make demo-loop            HOAP-2 or TALOS walks by a wrong URDF, is identified by its feet, walks again
#   make demo-walk            a biped walks with its true CoM on the path; also ROBOT=talos
#   make demo-diagnose        TALOS walks, takes a weight, is pushed, a sensor drifts: what is named when
#                             demo, -trot, -identify, -walk show it in the browser: VIEW=stay keeps the page, VIEW=off
#   make view ROBOT=talos     a robot in the browser, sliders move its joints; also VIEW_ARGS="--record robot.html"
#   make setup-robot URDF=robot.urdf   writes robot.yaml, the configuration of your robot; SETUP_ARGS=--help
#   make test                 the tests, in 8 minutes on two cores, 16 on slow ones; make test-fast: quick unit tests,
#                             make test-all: also those marked exhaustive (variants, more robots, long runs)
#   make test-commands        every shell line of README and the tutorials, in a fresh clone, as printed
#   make docs                 the site of the documentation, in out/site: guides, reference, evidence
#   make bench                all figures, stored in benchmarks/results/; BENCH="sesc_speed -- --full" for one
#   make evidence             docs/evidence.md and reliability.md from benchmarks/results/
#   make evidence-check       are figures in documents the stored ones, and these of today's code?
# Each does all the set-up that it needs.

SECONDS ?= 20
FEEDBACK ?= false
VIEW ?= on
OUT ?= out
# CONFIG=robot.yaml: the robot's configuration, where it is not beside its URDF.
DEMO = $(CONFIG_OPTION) --output "$(OUT)" --view $(VIEW)
CONFIG_OPTION = $(if $(CONFIG),--config "$(CONFIG)")
CHOSEN = $(or $(ROBOT),$(DEFAULT))
# Tests that run side by side; some wait more than they compute.
JOBS ?= 4
PYTEST = python -m pytest -n $(JOBS) --dist loadfile

.PHONY: help setup setup-dev setup-robot demo demo-trot demo-identify demo-identify-walk demo-loop demo-checkup demo-diagnose demo-walk view test test-all test-exhaustive test-fast test-commands lint docs bench evidence evidence-check clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

# Each target compiles the kernels that it needs, a node others when it starts; robots by name
# whose files come from PyPI are installed when they are asked for.
setup:
	@tools/setup.sh run "$(KERNELS)" "$(CHOSEN)"

setup-dev:
	@tools/setup.sh dev

setup-robot: KERNELS = none
setup-robot: setup
	@tools/in_env python -m com_model.commands.setup "$(URDF)" $(SETUP_ARGS)

demo: KERNELS = com,balance,collisions
demo: DEFAULT = hoap2
demo: setup
	@tools/in_env python -m com_demos.correct_demo --robot "$(CHOSEN)" $(DEMO) --seconds $(SECONDS)

demo-trot: KERNELS = com,trot,trunk
demo-trot: DEFAULT = scalf2
demo-trot: setup
	@tools/in_env python -m com_demos.trot_demo --robot "$(CHOSEN)" $(DEMO) $(if $(filter true,$(FEEDBACK)),--feedback)

demo-identify: KERNELS = com,collisions
demo-identify: DEFAULT = hoap2
demo-identify: setup
	@tools/in_env python -m com_demos.identify_demo --robot "$(CHOSEN)" $(DEMO)

demo-identify-walk: KERNELS = com,trot,walk_identification
demo-identify-walk: DEFAULT = go2
demo-identify-walk: setup
	@tools/in_env python benchmarks/identify_walk_demo.py --robot "$(CHOSEN)" $(CONFIG_OPTION) --output "$(OUT)"

demo-checkup: KERNELS = com,walk_identification
demo-checkup: DEFAULT = g1
demo-checkup: setup
	@tools/in_env python benchmarks/checkup_demo.py --output "$(OUT)"

demo-loop: KERNELS = com,collisions,walking
demo-loop: DEFAULT = hoap2
demo-loop: setup
	@tools/in_env python benchmarks/closed_loop.py --robot "$(CHOSEN)" --output "$(OUT)"

demo-walk: KERNELS = com,walking
demo-walk: DEFAULT = itu_biped
demo-walk: setup
	@tools/in_env python -m com_demos.walk_demo --robot "$(CHOSEN)" $(DEMO)

demo-diagnose: KERNELS = com,walking,trunk
demo-diagnose: DEFAULT = talos
demo-diagnose: setup
	@tools/in_env python benchmarks/diagnose_demo.py --robot "$(CHOSEN)" $(CONFIG_OPTION) --output "$(OUT)"

view: KERNELS = com
view: DEFAULT = hoap2
view: setup
	@tools/in_env python -m com_viewer.commands.view "$(CHOSEN)" $(CONFIG_OPTION) $(VIEW_ARGS)

# Last and one after another what a busy machine disturbs, or what would disturb all others: a
# browser draws by the processors and is served first.
test: setup-dev
	@tools/in_env $(PYTEST) -m "not exhaustive and not alone" $(PYTEST_ARGS); first=$$?; \
	[ $$first = 0 ] || [ $$first = 5 ] || exit $$first;  `# 5: none of them is chosen` \
	tools/in_env python -m pytest -m "alone and not exhaustive" $(PYTEST_ARGS); second=$$?; \
	[ $$second != 5 ] || exit $$first; exit $$second

test-exhaustive: setup-dev
	@tools/in_env $(PYTEST) -m exhaustive $(PYTEST_ARGS)

test-all: test test-exhaustive

# Not setup-dev: a new user has not got what the tests need.
test-commands:
	@python3 tools/walk_pages.py $(WALK_ARGS)

test-fast: setup-dev
	@tools/in_env $(PYTEST) -m "not slow and not exhaustive" test/unit $(PYTEST_ARGS)

lint: setup-dev
	@tools/in_env ruff check .
	@tools/in_env ruff format --check .
	@tools/in_env mypy
	@tools/in_env python tools/evidence_check.py --figures

docs: setup-dev
	@tools/in_env uv pip install --quiet -r tools/requirements/docs.txt
	@NO_MKDOCS_2_WARNING=1 tools/in_env python tools/site_pages.py --output "$(OUT)/site"

bench: setup-dev
	@tools/in_env python benchmarks/run_all.py $(BENCH); failed=$$?; tools/in_env python tools/evidence_page.py; exit $$failed

evidence: setup-dev
	@tools/in_env python tools/evidence_page.py

evidence-check: setup-dev
	@tools/in_env python tools/evidence_check.py

clean:
	rm -rf .venv .noble build install log out

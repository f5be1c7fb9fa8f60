"""What the console teaches."""

HELP = """\
Move joints smoothly by hand. A joint is its name or its number in the list.

  show [JOINT ...]             where the joints are, and their ranges
  set JOINT NUMBER [UNIT] ...  go there; "set" may be left out:  4 0.3
  by JOINT NUMBER [UNIT] ...   go on by so much:                 by 4 -5deg
  reset JOINT ... | all        back to zero (or the nearest position that is allowed)
  stop                         come to rest now
  speed [PERCENT]              of what the joints can, 1 to 100
  unit [rad|deg|pulse]         of numbers without one
  save FILE                    write the posture as a motion file (csv)
  help [COMMAND]               more on a command
  quit                         end; the robot stays where it is

Several joints of one line begin and arrive together:  set LLEG_JOINT4 30deg RLEG_JOINT4 30deg
"""

TOPICS = {
    "show": """\
show [JOINT ...]
  Number, name, position in rad, deg and pulses, range. Pulses are there where the robot's
  configuration has the counts of its encoders.""",
    "set": """\
set JOINT NUMBER [UNIT] [JOINT NUMBER [UNIT] ...]
  Go smoothly to positions: rad, deg, or pulse with the robot's own signs (m for joints that move
  along a line). A position beyond a joint's range is refused, and then nothing moves at all.
    set BODY_JOINT1 0.2
    set 22 20deg 12 20 deg
    LLEG_JOINT4 -6270 pulse""",
    "by": """\
by JOINT NUMBER [UNIT] ...
  As set, but counted from where the joints are.""",
    "reset": """\
reset JOINT ... | reset all
  Back to zero; a joint whose range has no zero goes to the end that is nearest.
  All joints at once can make a robot fall: hang it up, or reset few at a time.""",
    "stop": """\
stop
  Comes to rest smoothly within half a second, wherever the joints are then. So does quit, Ctrl-C,
  a joint that does not follow, and joint_states that fall silent.""",
    "speed": """\
speed [PERCENT]
  Share of the velocity and acceleration limits that moves use; 10 at the start.""",
    "unit": """\
unit [rad|deg|pulse]
  Of numbers without one; rad at the start.""",
    "save": """\
save FILE
  Writes where the joints are as a motion file of one row; motion_player goes to it as to any
  other. Asks before it overwrites: the next line is the answer, yes or no.""",
    "quit": """\
quit
  Ends; so do exit, Ctrl-D and the end of a script.""",
}

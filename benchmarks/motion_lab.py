"""Samples of the motion laboratory, by the command motion_lab; its help says what it prints."""

from __future__ import annotations

import sys

from com_demos.motion_lab import main

if __name__ == "__main__":
    sys.exit(main())

# Prints true where there is a screen for windows, else false: the default of rviz.
if [ -n "$DISPLAY$WAYLAND_DISPLAY" ]; then printf true; else printf false; fi

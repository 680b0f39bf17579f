#!/bin/sh
# Plays systemctl and podman on a boot server of the demo: services that run are
# files in run/, images that were pulled are files in images/.
set -eu
cd "$BOOT_SERVER"
mkdir -p run images
case "${0##*/} $1" in
"podman image")
	[ -e "images/$(echo "$3" | tr / _)" ]
	;;
"podman pull")
	case $2 in
	*sabakan*) [ ! -e full ] || { echo "no space left on device" >&2; exit 125; } ;;
	esac
	sleep 0.3
	touch "images/$(echo "$2" | tr / _)"
	;;
"systemctl start" | "systemctl restart")
	sleep 0.3
	cp "var/components/${2%.service}.env" "run/$2"
	;;
"systemctl stop")
	rm -f "run/$2"
	;;
"systemctl is-active")
	[ -e "run/$2" ]
	;;
*)
	echo "${0##*/} $1: not played here" >&2
	exit 2
	;;
esac

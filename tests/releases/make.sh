#!/usr/bin/env bash
# Makes the files of a release: `tests/releases/make.sh AQMLAB FOLDER`, with the command of that
# release and the folder beside this file that has its sources. README.md says more.
set -euo pipefail
aqmlab=$(realpath "$1")
cd "$2"
export AQMLAB_CACHE=$(mktemp -d)
trap 'rm -rf "$AQMLAB_CACHE"' EXIT
rm -rf run store results plugin card
"$aqmlab" --version > version.txt
"$aqmlab" run scenario.toml --out run > shown.txt
"$aqmlab" sweep sweep.toml --out results --store store > swept.txt
if [ -e red.py ]; then
	"$aqmlab" run scenario.toml --plugin red.py --out plugin \
		--set 'topology.bottleneck.forward.discipline={ kind = "plugin", name = "py-red", min_th = "5 packets", max_th = "15 packets", limit = "60 packets" }' > /dev/null
	here=$PWD
	cd "$AQMLAB_CACHE"  # it leaves its runs where it is called
	"$aqmlab" evaluate codel --only a-base --seeds 1 --baseline fq-codel --out card > /dev/null
	mkdir "$here/card" && cp card/card.json "$here/card"
fi

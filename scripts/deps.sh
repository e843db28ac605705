#!/usr/bin/env bash
# Installs the missing dependencies of volsfu.
#
#   scripts/deps.sh build    compiler, Draco, Opus, Speex, librealsense: for building, testing and the demo
#   scripts/deps.sh lint     shellcheck, promtool, staticcheck, govulncheck; clang, for the BPF programs of volnet; Helm's
#                            Go packages, for the tests of the chart
#   scripts/deps.sh web      Node and npm, for the pages for browsers
#   scripts/deps.sh clients  Mono and Newtonsoft's JSON library, for the tests of the Unity package; Chromium, for those
#                            of the pages; NumPy and the programs that execute a notebook, for those of the Python
#                            package
#   scripts/deps.sh lab      iperf3 and an ffmpeg with VMAF, for experiments
#   scripts/deps.sh          all of these
#   scripts/deps.sh release  Zig, whose C compiler builds the C library for other systems
#
# Works on Debian 12, as root and as a user with sudo. Programs that Debian does not package, or only together with a
# service, are installed into .tools/bin inside the checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools=$PWD/.tools/bin
export PATH="$tools:$PATH"

# v0.8.2 is the release 2026.2.2.
staticcheck_module=honnef.co/go/tools
staticcheck_version=v0.8.2
govulncheck_module=golang.org/x/vuln
govulncheck_version=v1.9.0

# Node, of the latest long-term support release, and npm, both in versions that Vite supports; Debian's are too old.
# Both come from the npm registry, like the packages of the pages.
node_version=22.23.3
node_x64=qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==
node_arm64=l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==
npm_version=10.9.9
npm_sum=1g+6jLQvaIuB4zwvHL7yrXuXcWZwDsCtBX8bbWDqbvJSSr9nPiDDWTHNgwXR27iIcTTW7v3A57hDW9RYv2W4Yg==

say() { printf 'deps: %s\n' "$*" >&2; }
fail() {
	say "$*"
	exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif has sudo; then
		sudo "$@"
	else
		fail "this needs root: $* (become root, or install sudo)"
	fi
}

check_go() {
	local want have
	want=$(awk '$1 == "go" { print $2 }' go.mod)
	if ! has go; then
		[ -x /usr/local/go/bin/go ] &&
			fail "Go is at /usr/local/go but not on the path: export PATH=\$PATH:/usr/local/go/bin"
		fail "Go $want or newer is needed and there is no 'go' on the path; get it from https://go.dev/dl/"
	fi
	# The version is read inside the module, so that a Go that downloads newer toolchains reports the one that it
	# will use.
	have=$(go env GOVERSION 2>/dev/null) || have=$(go version 2>/dev/null | awk '{ print $3 }') || true
	have=${have#go}
	have=${have%% *}
	[ -n "$have" ] || fail "Go $want or newer is needed; the 'go' at $(command -v go) does not tell its version"
	[ "$(printf '%s\n' "$want" "$have" | sort -V | head -n 1)" = "$want" ] ||
		fail "Go $want or newer is needed, found $have at $(command -v go); get it from https://go.dev/dl/"
}

# need PROGRAM PACKAGE: adds the Debian package to the missing ones unless the program is installed.
missing=()
need() { has "$1" || missing+=("$2"); }

apt_updated=
apt_update() {
	[ -z "$apt_updated" ] || return 0
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 update
	apt_updated=yes
}

install_packages() {
	[ ${#missing[@]} -gt 0 ] || return 0
	has apt-get || fail "these Debian packages, or what your system calls them, are missing: ${missing[*]}"
	say "installing ${missing[*]}"
	apt_update
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
		install --yes --no-install-recommends "${missing[@]}" >/dev/null
}

# The package prometheus would start a server on the port of volsfu's admin listener. Only promtool is needed, a single
# program that depends only on libc, so it is extracted from the package, which needs no root.
install_promtool() (
	has apt-get || fail "promtool is missing; it comes with Prometheus"
	say "taking promtool out of Debian's package prometheus"
	apt_update
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	cd "$scratch"
	# As root, apt would download as a separate user, who may not write here.
	apt-get -qq -o APT::Sandbox::User=root download prometheus
	dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool
	install -D -m 755 usr/bin/promtool "$tools/promtool"
)

# has_checker PROGRAM MODULE VERSION: succeeds if the program has that version and was built by the current Go. A
# checker built by an older Go rejects packages of a newer one.
has_checker() {
	[ -x "$tools/$1" ] || return 1
	local built
	built=$(go version -m "$tools/$1" 2>/dev/null) || return 1
	[[ $built == *": $(go env GOVERSION)"* && $built == *"$2"$'\t'"$3"* ]]
}

# install_checker PROGRAM MODULE VERSION: installs the program unless it has that version.
install_checker() {
	! has_checker "$@" || return 0
	say "building $1 $3"
	GOFLAGS='' GOBIN=$tools go install "$2/cmd/$1@$3"
}

deps_build() {
	need git git
	# Go downloads modules over HTTPS.
	[ -e /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
	need g++ g++
	# AddressSanitizer's library, for make asan: it is part of Debian's g++, but not of every compiler.
	if has g++ && [[ $(g++ -print-file-name=libasan.so) != /* ]]; then missing+=(libasan8); fi
	# Network tests create namespaces.
	need ip iproute2
	need pkg-config pkg-config
	# Without pkg-config the libraries cannot be checked; apt then installs them, or finds them installed.
	pkg-config --exists draco 2>/dev/null || missing+=(libdraco-dev)
	pkg-config --exists libjpeg 2>/dev/null || missing+=(libjpeg-dev)
	pkg-config --exists opus 2>/dev/null || missing+=(libopus-dev)
	pkg-config --exists speex 2>/dev/null || missing+=(libspeex-dev)
}

# Vite needs Node 20.19 or newer.
has_node() {
	has node && has npm && node -e '
		const [a, b] = process.versions.node.split(".").map(Number)
		process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'
}

# fetch_package URL SUM FOLDER: downloads a package of the registry, checks its SHA-512 and unpacks it.
fetch_package() {
	local archive
	archive=$(mktemp)
	curl --fail --silent --show-error --location --retry 3 --output "$archive" "$1" || return 1
	if [ "$(openssl dgst -sha512 -binary "$archive" | base64 --wrap 0)" != "$2" ]; then
		rm -f "$archive"
		fail "$1 is not what it was: its SHA-512 differs"
	fi
	rm -rf "$3" && mkdir -p "$3"
	tar -xzf "$archive" -C "$3" --strip-components 1
	rm -f "$archive"
}

# The build continues without Node: the server then shows that it has no viewer.
install_node() {
	local registry=https://registry.npmjs.org home arch sum
	home=$(dirname "$tools")/node
	case $(uname -m) in
	x86_64) arch=x64 sum=$node_x64 ;;
	aarch64) arch=arm64 sum=$node_arm64 ;;
	*)
		say "no Node for $(uname -m) is known here: install Node 20.19 or newer for the viewer"
		return 0
		;;
	esac
	say "fetching Node $node_version and npm $npm_version"
	if ! fetch_package "$registry/node-linux-$arch/-/node-linux-$arch-$node_version.tgz" "$sum" "$home/node" ||
		! fetch_package "$registry/npm/-/npm-$npm_version.tgz" "$npm_sum" "$home/npm"; then
		say "Node cannot be had: the server is built without its viewer"
		return 0
	fi
	mkdir -p "$tools"
	ln -sf "$home/node/bin/node" "$tools/node"
	printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$home/node/bin/node" "$home/npm/bin/npm-cli.js" >"$tools/npm"
	chmod +x "$tools/npm"
}

deps_web() {
	has_node || need curl curl
	has_node || need openssl openssl
}

# Debian has no package of librealsense. RealSense's package for Python contains the whole library; tests use its C API.
realsense_version=2.59.1.11053
# SHA-256 of the wheel for Python 3.11 on x86-64
realsense_sum=04593436a55be82f147a485a261a601e35b49b2a3b25c35e2ad6eb5a775bdde1
realsense_lib=$PWD/.tools/lib

has_realsense() { [ "$(cat "$realsense_lib/librealsense2.version" 2>/dev/null)" = "$realsense_version" ]; }

# The package supports only these machines.
takes_realsense() { [ "$(uname -s)-$(uname -m)" = Linux-x86_64 ]; }

deps_realsense() {
	takes_realsense || return 0
	local libraries
	libraries=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p) || libraries=
	[[ $libraries == *libusb-1.0.so.0* ]] || missing+=(libusb-1.0-0)
	[[ $libraries == *libudev.so.1* ]] || missing+=(libudev1)
	has_realsense || python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
}

# extract_wheel PACKAGE==VERSION SUM PLATFORM OPTION…: downloads a wheel, checks its SHA-256, and extracts the wheel into
# a new folder, which becomes the present one and is removed when the calling subshell ends.
extract_wheel() {
	local requirement=$1 sum=$2 platform=$3
	shift 3
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	cd "$scratch"
	echo "$requirement --hash=sha256:$sum" >wanted
	python3 -m pip --quiet --disable-pip-version-check --retries 2 download --no-deps --require-hashes \
		--only-binary=:all: --platform "$platform" "$@" --requirement wanted >&2 || return 1
	python3 -m zipfile -e ./*.whl .
}

# The wheel's library refers to Python's functions, which nothing here calls. librealsense2.so is a library that defines
# these symbols and depends on the wheel's, so that a program that opens it finds all symbols.
install_realsense() (
	say "extracting librealsense $realsense_version from its Python package"
	extract_wheel "pyrealsense2==$realsense_version" "$realsense_sum" manylinux1_x86_64 \
		--implementation cp --python-version 311 || return 1
	library=pyrealsense2/pyrealsense2.cpython-311-x86_64-linux-gnu.so
	soname=$(objdump -p "$library" | awk '$1 == "SONAME" { print $2 }')
	mkdir -p "$realsense_lib"
	rm -f "$realsense_lib"/librealsense2.* "$realsense_lib"/pyrealsense2.*
	mv "$library" "$realsense_lib/$soname" || return 1
	nm -D --undefined-only "$realsense_lib/$soname" |
		awk '$NF ~ /^_?Py/ { sub(/@.*/, "", $NF); print "char " $NF "[512];" }' >python.c
	gcc -shared -fPIC -o "$realsense_lib/librealsense2.so" python.c \
		-Wl,--no-as-needed -L"$realsense_lib" -l:"$soname" -Wl,-rpath,"\$ORIGIN" &&
		echo "$realsense_version" >"$realsense_lib/librealsense2.version"
)

# Debian's ffmpeg is built without libvmaf. A Python package contains a static one with it.
ffmpeg_version=0.8.1 # of the package
ffmpeg_sum=050d6850601c3b3890bd2b28306f3b842b3daea390a561101174375a1c460bda # SHA-256 of the wheel for x86-64

takes_ffmpeg() { [ "$(uname -s)-$(uname -m)" = Linux-x86_64 ]; }
has_vmaf() {
	local filters
	has vmaf && return 0
	filters=$(ffmpeg -hide_banner -filters 2>/dev/null) && [[ $filters == *" libvmaf "* ]]
}

deps_lab() {
	need iperf3 iperf3
	takes_ffmpeg || return 0
	has_vmaf || python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
}

install_ffmpeg() (
	say "extracting ffmpeg from the Python package imageio-ffmpeg $ffmpeg_version"
	extract_wheel "imageio-ffmpeg==$ffmpeg_version" "$ffmpeg_sum" manylinux_2_28_x86_64 --implementation py || return 1
	install -D -m 755 imageio_ffmpeg/binaries/ffmpeg-linux-x86_64-* "$tools/ffmpeg"
)

# Zig's Python package contains the whole program.
zig_version=0.15.2
zig_sum=806316453d1ede7174ed3fefb8e5348154629089c3bb5fe812dfd0e172fac130 # SHA-256 of the wheel for x86-64
zig_home=$PWD/.tools/zig

has_zig() { [ "$(cat "$zig_home/version" 2>/dev/null)" = "$zig_version" ]; }

deps_release() {
	[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || fail "releases are built on Linux on x86-64"
	has_zig || python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
}

install_zig() (
	say "extracting Zig $zig_version from its Python package"
	extract_wheel "ziglang==$zig_version" "$zig_sum" manylinux_2_12_x86_64 --implementation py || return 1
	rm -rf "$zig_home"
	mkdir -p "$(dirname "$zig_home")"
	mv ziglang "$zig_home"
	chmod +x "$zig_home/zig"
	echo "$zig_version" >"$zig_home/version"
)

deps_lint() {
	need shellcheck shellcheck
	# The compiled BPF programs are compared with their sources.
	need clang clang
	need llvm-strip llvm
	[ -e /usr/include/bpf/bpf_helpers.h ] || missing+=(libbpf-dev)
}

deps_clients() {
	need mcs mono-mcs
	need mono mono-runtime
	[ -e /usr/lib/cli/Newtonsoft.Json-5.0/Newtonsoft.Json.dll ] || missing+=(libnewtonsoft-json5.0-cil)
	need chromium chromium
	# Without a font, pages show no text.
	[ -e /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf ] || missing+=(fonts-dejavu-core)
	has_python || python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3 python3-venv)
}

# The Python of the tests has its packages in an environment of its own, as a user's has.
python_env=$PWD/.tools/python
python_list=$PWD/clients/python/requirements.txt

has_python() { [ -x "$python_env/bin/python" ] && cmp -s "$python_list" "$python_env/requirements.txt"; }

install_python() {
	say "installing NumPy and Jupyter into .tools/python"
	rm -rf "$python_env"
	python3 -m venv "$python_env" &&
		"$python_env/bin/python" -m pip --quiet --disable-pip-version-check --retries 2 install \
			--only-binary=:all: --requirement "$python_list" >&2 &&
		cp "$python_list" "$python_env/requirements.txt"
}

[ $# -gt 0 ] || set -- build web lint clients lab
for part in "$@"; do
	case $part in
	build)
		deps_build
		deps_realsense
		;;
	web) deps_web ;;
	lint) deps_lint ;;
	clients) deps_clients ;;
	lab) deps_lab ;;
	release) deps_release ;;
	*) fail "expected build, web, lint, clients, lab or release, got $part" ;;
	esac
done
check_go
need make make
install_packages
case " $* " in
*" clients "*)
	has_python || install_python ||
		say "no NumPy: its packages cannot be had; the tests of the Python package are skipped"
	;;
esac
case " $* " in
*" build "*)
	if takes_realsense && ! has_realsense; then
		install_realsense || say "no librealsense: its Python package cannot be had; tests with it are skipped"
	fi
	;;
esac
case " $* " in
*" web "*) has_node || install_node ;;
esac
case " $* " in
*" release "*) has_zig || install_zig || fail "Zig cannot be had: the C library is not built for other systems" ;;
esac
case " $* " in
*" lint "*)
	has promtool || install_promtool
	install_checker staticcheck "$staticcheck_module" "$staticcheck_version"
	install_checker govulncheck "$govulncheck_module" "$govulncheck_version"
	# go.mod and go.sum pin the modules. Listing the packages downloads only the modules that have some of them.
	GOWORK=off go list -C test/chart -deps -test ./... >/dev/null
	;;
esac
case " $* " in
*" lab "*)
	if takes_ffmpeg && ! has_vmaf; then
		install_ffmpeg || say "no ffmpeg with VMAF: its Python package cannot be had; experiments print PSNR and SSIM"
	fi
	;;
esac

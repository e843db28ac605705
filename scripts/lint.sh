#!/usr/bin/env bash
# Runs every static check of the repository. The exit status is 1 if one of them failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.tools/bin:$PATH"

# files PATTERN…: prints the checkout's files, tracked or new, except those that git ignores, separated by NULs. A
# source archive has no git.
files() {
	if git rev-parse --git-dir >/dev/null 2>&1; then
		git ls-files -z --cached --others --exclude-standard --deduplicate -- "$@"
	else
		local names=()
		for pattern in "$@"; do names+=(-o -path "./$pattern" -o -name "$pattern"); done
		find . \( -name .git -o -name .tools -o -name bin -o -name dist -o -name node_modules \) -prune -o \
			-type f \( -false "${names[@]}" \) -print0
	fi | while IFS= read -r -d '' name; do
		[ ! -f "$name" ] || printf '%s\0' "$name" # git also lists files whose deletion is not committed
	done
}

check_gofmt() {
	local unformatted
	unformatted=$(files '*.go' | xargs -0r gofmt -l)
	[ -z "$unformatted" ] || {
		printf 'not formatted, run gofmt -w:\n%s\n' "$unformatted"
		return 1
	}
}

# The modules of the repository. Each has to build with its own go.mod, without go.work.
modules=(. lab)

# modulewise COMMAND…: runs a command in each module, without go.work. It fails if the command fails in one of them.
modulewise() {
	local module status=0
	for module in "${modules[@]}"; do
		(cd "$module" && GOWORK=off "$@") || status=1
	done
	return $status
}

# vet_module vets the packages with cgo without -trimpath: the cached results of cgo name the files of the checkout that
# compiled them, which go vet opens, and which may be gone.
vet_module() {
	local with_cgo all
	with_cgo=$(go list -f '{{if .CgoFiles}}{{.ImportPath}}{{end}}' ./...) && all=$(go list ./...) || return
	grep -vxF -f <(printf '%s\n' "${with_cgo:-none}") <<<"$all" | xargs go vet || return
	[ -z "$with_cgo" ] || GOFLAGS=${GOFLAGS//-trimpath/} xargs go vet <<<"$with_cgo"
}

check_vet() { modulewise vet_module; }

check_staticcheck() { modulewise staticcheck ./...; }

# Servers are static, and the client must build without a C compiler.
check_without_cgo() { CGO_ENABLED=0 modulewise go build ./...; }

# The product does not depend on the lab and its plotting library.
check_product() {
	local packages
	packages=$(GOWORK=off go list -deps ./cmd/... ./pkg/... ./clients/c) || return
	! grep -E '^(github\.com/volsfu/volsfu/lab|gonum\.org)(/|$)' <<<"$packages"
}

# The client also runs on other systems, with portable code for sockets and clocks that no other check compiles. This
# covers the client and all packages of the repository that it imports, and volnet, which reports that it needs Linux.
check_other_systems() {
	local system packages
	for system in windows darwin; do
		packages=$(GOWORK=off GOOS=$system CGO_ENABLED=0 go list -deps -f \
			'{{if .Module}}{{if .Module.Main}}{{.ImportPath}}{{end}}{{end}}' \
			./cmd/volpeer ./cmd/volbridge ./cmd/volnet ./pkg/client) &&
			xargs env GOWORK=off GOOS="$system" GOARCH=amd64 CGO_ENABLED=0 go vet <<<"$packages" || return
	done
}

check_shell() { files '*.sh' '.ci/run' | xargs -0r shellcheck; }

check_bpf() { scripts/bpf.sh check; }

check_floors() { scripts/vulnerabilities.sh floors; }

check_vulnerabilities() { scripts/vulnerabilities.sh scan; }

check_prometheus() {
	local queries
	queries=$(mktemp)
	dashboard_rules >"$queries"
	promtool check config deploy/prometheus/prometheus.yml &&
		promtool test rules deploy/prometheus/rules_test.yml &&
		promtool check rules "$queries"
	local status=$?
	rm -f "$queries"
	return $status
}

# The tests of the chart are a module of their own, because Helm needs many modules.
check_chart() (
	cd test/chart && export GOWORK=off
	go vet ./... && staticcheck ./... && go test -count=1 ./...
)

# dashboard_rules prints the dashboard's queries as recording rules, which promtool can check. Variables are replaced by
# valid values.
dashboard_rules() {
	printf 'groups:\n  - name: dashboard\n    rules:\n'
	sed -nE 's/^ *"expr": (".*"),?$/\1/p' deploy/grafana/dashboards/*.json |
		sed -e 's/[$]__rate_interval/1m/g' -e 's/[$]instance/.*/g' |
		awk '{ printf "      - { record: \"query:%d\", expr: %s }\n", NR, $0 }'
}

# grep_files MESSAGE PATTERN: fails and prints the matching lines of text files outside testdata.
grep_files() {
	local found
	found=$(files '*' | grep -zvE '(^|/)testdata/|(^|/)(go\.sum|package-lock\.json)$' |
		xargs -0r grep -nIE -e "$2" -- || true)
	[ -z "$found" ] || {
		printf '%s:\n%s\n' "$1" "$found"
		return 1
	}
}

# The brackets prevent the patterns from matching themselves.
check_words() {
	local status=0
	grep_files 'left-over words' '\b(TO[D]O|FIX[M]E|XX[X])\b' || status=1
	grep_files 'paths of some machine' \
		"(^|[[:space:]\"'\`(=:,])/(wor[k]|roo[t]|tm[p]|home/[a-z]+)(/|\$|[[:space:]\"'\`),:;])" || status=1
	return $status
}

# check_style prints the lines of Go files with more than 120 columns, at four columns per tab, and those with a phrase
# that plain comments do not need. Lines of session descriptions in raw strings cannot be broken.
check_style() {
	local found
	# shellcheck disable=SC2016 # the variables are Perl's
	found=$(files '*.go' | grep -zvE '(^|/)testdata/' |
		xargs -0r perl -CSD -ne '
			s/\t/    /g;
			print "$ARGV:$.: more than 120 columns\n" if length > 121 && !/^a=/;
			print "$ARGV:$.: phrase \"$&\"\n" if m{
				\b (?: anew | lest | tells\ whether | of\ its\ own\ accord ) \b
				| ^\s* // \  \w+\ (?: is | are )\ what \b
			}x;
			close ARGV if eof') || return
	[ -z "$found" ] || {
		printf '%s\n' "$found"
		return 1
	}
}

# Without Node there is no package.
check_npm() {
	command -v npm >/dev/null || {
		echo 'Node is missing; make deps installs it'
		return 77
	}
	scripts/npm.sh check
}

# A check with the status 77 could not be done; its output has the reason.
failed=()
run() {
	local started=$SECONDS status=0 output
	output=$("check_$1" 2>&1) || status=$?
	if [ $status -eq 77 ]; then
		printf 'skip  %3ds  %s\n%s\n' $((SECONDS - started)) "$2" "$output"
	elif [ $status -eq 0 ]; then
		printf 'ok    %3ds  %s\n' $((SECONDS - started)) "$2"
	else
		printf 'FAIL  %3ds  %s\n%s\n' $((SECONDS - started)) "$2" "$output"
		failed+=("$2")
	fi
}

run gofmt 'gofmt'
run vet 'go vet'
run staticcheck 'staticcheck'
run without_cgo 'build without cgo'
run product 'product without the lab'
run other_systems 'go vet for Windows and macOS'
run shell 'shellcheck'
run bpf 'compiled BPF programs'
run floors 'minimum versions of modules'
run vulnerabilities 'govulncheck'
run prometheus 'promtool'
run chart 'Helm chart'
run words 'left-over words and machine paths'
run style 'widths and phrases of Go files'
run npm 'npm package: size, DOM, public declarations'

[ ${#failed[@]} -eq 0 ] || {
	printf 'lint: failed: %s\n' "$(printf '%s, ' "${failed[@]}" | sed 's/, $//')"
	exit 1
}

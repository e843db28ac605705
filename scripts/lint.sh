#!/usr/bin/env bash
# Every static check of the repository. All of them run; the exit status tells whether one failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.tools/bin:$PATH"

# files PATTERN…: the checkout's files, tracked or new, without what git ignores; NUL-separated. A source archive has no git.
files() {
	if git rev-parse --git-dir >/dev/null 2>&1; then
		git ls-files -z --cached --others --exclude-standard --deduplicate -- "$@"
	else
		local names=()
		for pattern in "$@"; do names+=(-o -path "./$pattern" -o -name "$pattern"); done
		find . \( -name .git -o -name .tools -o -name bin -o -name dist -o -name node_modules \) -prune -o \
			-type f \( -false "${names[@]}" \) -print0
	fi | while IFS= read -r -d '' name; do
		[ ! -f "$name" ] || printf '%s\0' "$name" # git lists what was deleted but not yet committed, too
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

# The modules of the repository. Each has to build by its own go.mod, without go.work.
modules=(. lab)

# modulewise COMMAND…: runs a command in each module, without go.work. It fails if the command fails in one of them.
modulewise() {
	local module status=0
	for module in "${modules[@]}"; do
		(cd "$module" && GOWORK=off "$@") || status=1
	done
	return $status
}

check_vet() { modulewise go vet ./...; }

check_staticcheck() { modulewise staticcheck ./...; }

# Servers are static, and the client must build where there is no C compiler.
check_without_cgo() { CGO_ENABLED=0 modulewise go build ./...; }

# The product does without the lab and what draws its plots.
check_product() {
	local packages
	packages=$(GOWORK=off go list -deps ./cmd/... ./pkg/... ./clients/c) || return
	! grep -E '^(github\.com/volsfu/volsfu/lab|gonum\.org)(/|$)' <<<"$packages"
}

# Clients run on other systems, too, where sockets and clocks take portable paths that nothing else compiles: the client, and all of the repository that it needs.
check_other_systems() {
	local system packages
	for system in windows darwin; do
		packages=$(GOWORK=off GOOS=$system CGO_ENABLED=0 go list -deps -f '{{if .Module}}{{if .Module.Main}}{{.ImportPath}}{{end}}{{end}}' ./cmd/volpeer ./cmd/volbridge ./pkg/client) &&
			xargs env GOWORK=off GOOS="$system" GOARCH=amd64 CGO_ENABLED=0 go vet <<<"$packages" || return
	done
}

check_shell() { files '*.sh' '.ci/run' | xargs -0r shellcheck; }

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

# The dashboard's queries as recording rules, a form in which promtool can check them. Variables get a value that parses.
dashboard_rules() {
	printf 'groups:\n  - name: dashboard\n    rules:\n'
	sed -nE 's/^ *"expr": (".*"),?$/\1/p' deploy/grafana/dashboards/*.json |
		sed -e 's/[$]__rate_interval/1m/g' -e 's/[$]instance/.*/g' |
		awk '{ printf "      - { record: \"query:%d\", expr: %s }\n", NR, $0 }'
}

# grep_files MESSAGE PATTERN: fails and prints the lines where a text file outside testdata matches.
grep_files() {
	local found
	found=$(files '*' | grep -zvE '(^|/)testdata/|(^|/)(go\.sum|package-lock\.json)$' | xargs -0r grep -nIE -e "$2" -- || true)
	[ -z "$found" ] || {
		printf '%s:\n%s\n' "$1" "$found"
		return 1
	}
}

# The brackets keep the patterns from finding themselves.
check_words() {
	local status=0
	grep_files 'left-over words' '\b(TO[D]O|FIX[M]E|XX[X])\b' || status=1
	grep_files 'paths of some machine' "(^|[[:space:]\"'\`(=:,])/(wor[k]|roo[t]|tm[p]|home/[a-z]+)(/|\$|[[:space:]\"'\`),:;])" || status=1
	return $status
}

# A check whose status is 77 could not be done; its output says why.
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
run floors 'least versions of modules'
run vulnerabilities 'govulncheck'
run prometheus 'promtool'
run words 'left-over words and machine paths'

[ ${#failed[@]} -eq 0 ] || {
	printf 'lint: failed: %s\n' "$(printf '%s, ' "${failed[@]}" | sed 's/, $//')"
	exit 1
}

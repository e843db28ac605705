# The targets of the repository. Each one installs its missing dependencies; `make help` lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# The version that the binaries report.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# The commit and its date, which programs report beside the version.
BUILD = github.com/volsfu/volsfu/internal/build
COMMIT ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)
DATE ?= $(shell git log -1 --format=%cs 2>/dev/null)
LDFLAGS = -X main.version=$(VERSION) -X $(BUILD).commit=$(COMMIT) -X $(BUILD).date=$(DATE)
# With -trimpath the keys of Go's build cache have no path, so that a new clone uses what another one has compiled.
# LDFLAGS sets the version; Go's version stamp would fail in a checkout that belongs to another user.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath -buildvcs=false)

# Every command that has sources. The lab is a module of its own, with its commands.
COMMANDS := $(sort $(notdir $(patsubst %/,%,$(dir $(wildcard cmd/*/*.go lab/cmd/*/*.go)))))

# Builds the command that the target is called after. Its module alone decides on versions, without go.work.
GOCOMMAND = GOWORK=off go build -C $(if $(wildcard lab/cmd/$(@F)),lab,.) -ldflags '$(LDFLAGS)' -o $(CURDIR)/$@ ./cmd/$(@F)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /  make \1 \t/' | expand -t 20

.PHONY: deps
deps: ## install the missing dependencies of building, testing and linting
	@scripts/deps.sh

.PHONY: deps-test
deps-test:
	@scripts/deps.sh build web clients

.PHONY: deps-release
deps-release:
	@scripts/deps.sh build web clients release

.PHONY: deps-build
deps-build:
	@scripts/deps.sh build web

# The web pages, which the server embeds.
WEB = clients/web/dist/site/index.html
$(WEB): $(shell find clients/web/src clients/web/public clients/web/*.html clients/web/*.json clients/web/*.ts \
		-type f 2>/dev/null)
	@scripts/web.sh build

.PHONY: web
web: deps-build $(WEB) ## build the viewer and the console, which the next build of the server embeds

bin/volsfu: $(WEB)

.PHONY: build
build: $(COMMANDS:%=bin/%) ## build the commands into bin/ (clients and vollab without Draco where it is not installed)

# The Go command decides which binaries are out of date.
.PHONY: FORCE
FORCE:

# Static, so that the server runs on any Linux system.
bin/%: FORCE
	@CGO_ENABLED=0 $(GOCOMMAND)

# Draco is C++. Without it client and lab are built, but report an error when Draco is requested.
bin/volpeer bin/volbridge bin/vollab: FORCE
	@if command -v g++ >/dev/null && pkg-config --exists draco libjpeg opus speex 2>/dev/null; then \
		CGO_ENABLED=1 $(GOCOMMAND); \
	else \
		echo '$(@F): built without Draco; make deps installs it' >&2; \
		CGO_ENABLED=0 $(GOCOMMAND); \
	fi

# The duration of each native fuzz test (0 skips them), and the maximum duration of all together.
FUZZTIME ?= 2s
FUZZBUDGET ?= 3m
# The number of slowest tests to list.
SLOWEST ?= 10
# Packages to test and to measure: those of both modules.
PKG ?= ./... ./lab/...
SUITE = .tools/bin/suite

.PHONY: $(SUITE)
$(SUITE):
	@go build -o $@ ./test/suite

.PHONY: test
test: deps-test $(WEB) $(SUITE) ## run the tests with the race detector, without the long ones (PKG=./pkg/...)
	@$(SUITE) -fuzztime 0 -slowest $(SLOWEST) $(PKG)

.PHONY: test-long
test-long: deps-test $(WEB) $(SUITE) ## run the long tests, then each fuzz test briefly (PKG=./pkg/... FUZZTIME=2s)
	@$(SUITE) -long -slowest $(SLOWEST) -fuzztime $(FUZZTIME) -fuzzbudget $(FUZZBUDGET) $(PKG)

.PHONY: fuzz
fuzz: deps-build $(SUITE) ## run only the fuzz tests, each for FUZZTIME (make fuzz FUZZTIME=5m PKG=./pkg/payload)
	@$(SUITE) -tests=false -fuzztime $(FUZZTIME) -fuzzbudget 0 $(PKG)

.PHONY: asan
asan: deps-build ## run the fuzz tests of C and C++ with AddressSanitizer (FUZZTIME=2s)
	@FUZZTIME='$(FUZZTIME)' scripts/asan.sh

.PHONY: lint
lint: deps ## run gofmt, go vet, staticcheck, govulncheck, shellcheck, promtool, checks of the Helm chart, words and widths
	@scripts/lint.sh

.PHONY: bench
bench: build ## measure standard loads into docs/performance.md, or run Go benchmarks (BENCH=Forward PKG=…)
ifdef BENCH
	@go test -run '^$$' -bench '$(BENCH)' -benchmem $(PKG)
else
	@bin/vollab bench --claims --write docs/performance.md
endif

# Kubernetes reports this version. Helm refuses a chart whose kubeVersion is later.
KUBERNETES = k8s.io/component-base/version
KUBERNETES_VERSION = $(shell awk '$$1 == "k8s.io/kubernetes" { print $$2 }' test/kubernetes/go.mod)

.PHONY: kubernetes
kubernetes: ## build the control plane of Kubernetes, and Helm, into .tools/bin/ for vollab check cluster --only 14
	@mkdir -p .tools/bin
	@cd test/kubernetes && GOWORK=off CGO_ENABLED=0 go build -o $(CURDIR)/.tools/bin/ \
		-ldflags '-s -w -X $(KUBERNETES).gitVersion=$(KUBERNETES_VERSION)' tool

.PHONY: clib
clib: deps-build ## build the SDK as a C library, libvolsfu.so and volsfu.h, into bin/
	@CGO_ENABLED=1 go build -buildmode=c-shared -tags portable -o bin/libvolsfu.so ./clients/c
	@cp clients/c/volsfu.h bin/ && rm -f bin/libvolsfu.h

.PHONY: wheel
wheel: deps ## build the Python package, with the library inside, into dist/
	@mkdir -p dist && scripts/wheel.sh "$$(git describe --tags --always)" dist

.PHONY: npm
npm: deps-build ## build the npm package @volsfu/client into dist/
	@mkdir -p dist && scripts/npm.sh pack "$$(git describe --tags --always)" dist

# Parameters of make demo: SECONDS (if unset, until Ctrl-C), source (if unset, see scripts/demo.sh), tiles, qualities,
# and ports.
SOURCE ?=
FPS ?= 30
TILES ?= 4
POINTS ?= 40000
PORT ?= 8080
ADMIN_PORT ?= 9090
MEDIA_PORT ?= 7882

.PHONY: demo
demo: deps-build ## run a conference on this machine (SECONDS=20 SOURCE=… TILES= POINTS= QUALITIES=)
	@$(MAKE) build
	@scripts/demo.sh --source '$(SOURCE)' --fps '$(FPS)' --tiles '$(TILES)' --points '$(POINTS)' \
		--port '$(PORT)' --admin-port '$(ADMIN_PORT)' --media-port '$(MEDIA_PORT)' \
		$(if $(QUALITIES),--qualities '$(QUALITIES)') $(if $(SECONDS),--seconds '$(SECONDS)') \
		$(if $(LOGS),--logs '$(LOGS)')

.PHONY: release
release: deps-release $(WEB) ## build servers, clients and packages for all supported systems into dist/, with checksums
	@scripts/release.sh '$(VERSION)'

.PHONY: clean
clean: ## remove built files (but not the tools in .tools/)
	@rm -rf bin dist clients/web/dist/site

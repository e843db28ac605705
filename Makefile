# The commands of the repository. Each installs what it needs and the machine lacks; `make help` lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# What the binaries call themselves.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS = -X main.version=$(VERSION)
# The version is stamped by LDFLAGS; Go's own stamp would fail in a checkout that belongs to another user.
GOBUILD = go build -trimpath -buildvcs=false

# Every command that has sources. The lab is a module of its own, with its commands.
COMMANDS := $(sort $(notdir $(patsubst %/,%,$(dir $(wildcard cmd/*/*.go lab/cmd/*/*.go)))))

# Builds the command that the target is called after. Its module alone decides on versions, without go.work.
GOCOMMAND = GOWORK=off go build -C $(if $(wildcard lab/cmd/$(@F)),lab,.) -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o $(CURDIR)/$@ ./cmd/$(@F)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /  make \1 \t/' | expand -t 20

.PHONY: deps
deps: ## install what building, testing and linting need and the machine lacks
	@scripts/deps.sh

.PHONY: deps-test
deps-test:
	@scripts/deps.sh build web clients

.PHONY: deps-build
deps-build:
	@scripts/deps.sh build web

# The pages for browsers, which the server carries.
WEB = clients/web/dist/site/index.html
$(WEB): $(shell find clients/web/src clients/web/public clients/web/*.html clients/web/*.json clients/web/*.ts -type f 2>/dev/null)
	@scripts/web.sh build

.PHONY: web
web: deps-build $(WEB) ## the viewer and the console, into the server at its next build

bin/volsfu: $(WEB)

.PHONY: build
build: $(COMMANDS:%=bin/%) ## build the commands into bin/ (volpeer and vollab without Draco where it is not installed)

# The Go command knows better than make what is out of date.
.PHONY: FORCE
FORCE:

# Static: the server runs wherever the kernel does.
bin/%: FORCE
	@CGO_ENABLED=0 $(GOCOMMAND)

# Draco is C++. Without it client and lab build all the same and say so where Draco is asked for.
bin/volpeer bin/vollab: FORCE
	@if command -v g++ >/dev/null && pkg-config --exists draco libjpeg opus speex 2>/dev/null; then \
		CGO_ENABLED=1 $(GOCOMMAND); \
	else \
		echo '$(@F): built without Draco; make deps installs it' >&2; \
		CGO_ENABLED=0 $(GOCOMMAND); \
	fi

# How long each native fuzz test runs, 0 for not at all, and how long all of them together at most.
FUZZTIME ?= 2s
FUZZBUDGET ?= 3m
# How many of the slowest tests are named.
SLOWEST ?= 10
# Packages to test and to measure: those of both modules.
PKG ?= ./... ./lab/...
SUITE = .tools/bin/suite

.PHONY: $(SUITE)
$(SUITE):
	@$(GOBUILD) -o $@ ./test/suite

.PHONY: test
test: deps-test $(WEB) $(SUITE) ## run the tests with the race detector, without the long ones (PKG=./pkg/...)
	@$(SUITE) -fuzztime 0 -slowest $(SLOWEST) $(PKG)

.PHONY: test-long
test-long: deps-test $(WEB) $(SUITE) ## run the long tests, then each fuzz test briefly (PKG=./pkg/... FUZZTIME=2s)
	@$(SUITE) -long -slowest $(SLOWEST) -fuzztime $(FUZZTIME) -fuzzbudget $(FUZZBUDGET) $(PKG)

.PHONY: fuzz
fuzz: deps-build $(SUITE) ## run only the fuzz tests, each as long as it is told (make fuzz FUZZTIME=5m PKG=./pkg/payload)
	@$(SUITE) -tests=false -fuzztime $(FUZZTIME) -fuzzbudget 0 $(PKG)

.PHONY: asan
asan: deps-build ## run the fuzz tests of decoders in C and C++ with AddressSanitizer (FUZZTIME=2s)
	@FUZZTIME='$(FUZZTIME)' scripts/asan.sh

.PHONY: lint
lint: deps ## gofmt, go vet, also for other systems, staticcheck, govulncheck, shellcheck, promtool, and words that must not be left over
	@scripts/lint.sh

.PHONY: bench
bench: build ## measure a standard set of loads, and what is claimed of the hot path, into docs/performance.md; with BENCH=Forward PKG=./internal/forward run Go benchmarks instead
ifdef BENCH
	@go test -run '^$$' -bench '$(BENCH)' -benchmem $(PKG)
else
	@bin/vollab bench --claims --write docs/performance.md
endif

.PHONY: clib
clib: deps-build ## the SDK as a C library, libvolsfu.so and volsfu.h, into bin/
	@CGO_ENABLED=1 $(GOBUILD) -buildmode=c-shared -o bin/libvolsfu.so ./clients/c
	@cp clients/c/volsfu.h bin/ && rm -f bin/libvolsfu.h

# What make demo takes: how long it runs (without: until Ctrl-C), the source and how it is cut, the ports.
SOURCE ?= synthetic
FPS ?= 30
TILES ?= 4
POINTS ?= 40000
PORT ?= 8080
ADMIN_PORT ?= 9090
MEDIA_PORT ?= 7882

.PHONY: demo
demo: deps-build ## a conference on this machine: server, two publishers, a watcher (SECONDS=20 SOURCE=… TILES= POINTS= QUALITIES=)
	@$(MAKE) build
	@scripts/demo.sh --source '$(SOURCE)' --fps '$(FPS)' --tiles '$(TILES)' --points '$(POINTS)' \
		--port '$(PORT)' --admin-port '$(ADMIN_PORT)' --media-port '$(MEDIA_PORT)' \
		$(if $(QUALITIES),--qualities '$(QUALITIES)') $(if $(SECONDS),--seconds '$(SECONDS)') $(if $(LOGS),--logs '$(LOGS)')

.PHONY: release
release: deps-build $(WEB) ## static servers for Linux, clients without Draco for Linux, Windows, macOS and Android, one with Draco for this machine, into dist/, with checksums
	@scripts/release.sh '$(VERSION)'

.PHONY: clean
clean: ## remove what was built (not the tools in .tools/)
	@rm -rf bin dist clients/web/dist/site

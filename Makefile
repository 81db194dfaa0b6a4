# kernelgate: `make demo` shows it, `make test` proves it.
.PHONY: help demo test bench lint setup build fuzz
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec

BIN := bin/kernelgate

# Without paths in programs, Go's and staticcheck's caches also serve other checkouts of the
# same sources.
export GOFLAGS := $(shell go env GOFLAGS) -trimpath

# What --version prints if Go does not know the commit of the checkout.
COMMIT = -X github.com/kernelgate/kernelgate/bot/cli.commit=$(shell git rev-parse --short=12 HEAD 2>/dev/null)$(shell test -z "$$(git status --porcelain --untracked-files=no 2>/dev/null)" || echo +dirty)

build: ## build the program into bin/
	@mkdir -p bin
	@go build -ldflags="$(COMMIT)" -o $(BIN) .

help: ## list the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)$$/make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | sort | awk -F'|' '{printf "%-24s%s\n", $$1, $$2}'

# Everything that the tests need in addition to Go and a C compiler: Go modules, the CUDA
# 13 compiler, Triton, CuTe DSL and NumPy from PyPI, GitHub's example payloads and API description, a headless
# Chromium and axe-core from npm, Google Benchmark from Debian, and kustomize with the schemas of
# Kubernetes, each into a cache.
# Without network all but the modules are left out with a message, except in CI, where
# tests must not skip.
FETCH := runners/build/toolchain/fetch-cuda.sh bot/pages/browser/fetch-browser.sh \
	bot/github/webhook/testdata/fetch-examples.sh bot/github/embedded/testdata/fetch-openapi.sh runners/backend/command/testdata/fetch-googlebenchmark.sh \
	.ci/fetch-kubernetes.sh

PACKAGES := triton cutedsl numpy

.PHONY: modules $(FETCH) $(PACKAGES)
setup: modules $(FETCH) $(PACKAGES) ## fetch the compilers, the browser and the API descriptions that tests use

modules: ## fetch the Go modules
	@go mod download

$(FETCH):
	@$@ >/dev/null || test -z "$$CI"

$(PACKAGES):
	@runners/build/toolchain/fetch-python.sh $@ >/dev/null || test -z "$$CI"

# The bot at work on this machine: no account, no GPU. At a terminal it stays until
# Ctrl-C, so that you can look around.
demo: build ## show the bot at work on this machine: no account, no GPU
	@if [ -t 1 ]; then $(BIN) demo; else $(BIN) demo --once; fi

# Compilers and tests make much garbage and keep little of it, so collect it rarely.
lint watched plain simulated: export GOGC := 400

lint: modules ## run gofmt, vet and staticcheck
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	go vet ./... ./.ci/mutate ./.ci/sbom ./.ci/archive
	go tool staticcheck ./... ./.ci/mutate ./.ci/sbom ./.ci/archive

# These run without the race detector, which would make them up to ten times slower. They measure
# real kernels, compile CUDA, or have no goroutines that share memory. ./bot/cli, ./docs,
# ./examples, ./bot/demo and ./bot/try run the whole program; the detector watches its parts in
# their own tests, and ./bot/github/embedded in every story that uses it. ./gates runs without it,
# too, and prints the error rates that it simulated. ./bot/controller and ./bot/github/webhook run
# both ways: long calculations, and the stories that reach no new statement of the controller, run
# only here, and the other stories only with the detector.
PLAIN := ./runners/backend/cpu ./bot/controller ./runners/build/toolchain/... ./bot/cli ./docs ./examples ./runners/gather/plan ./bot/github/webhook ./bot/actions ./bot/demo ./bot/local/... ./bot/try ./runners/gather/measure ./runners/backend/command \
	./bot/answer ./bot/attempts ./bot/change/... ./bot/repos ./bot/sweep ./bot/grammar ./runners/protocol ./bot/github/embedded/... ./bot/pages/browser ./bot/pages/chart \
	./bot/planner ./bot/present ./bot/publish ./bot/scheduler ./bot/verify ./gates/hindsight ./gates/number ./gates/report ./gates/stats/... ./kernels/... ./policies/... \
	./runners ./runners/work/bisect ./runners/bundle ./runners/work/check ./runners/backend/cuda/nvml ./runners/backend/cuda/oracle ./runners/backend/cuda/sdpatest ./runners/backend/cuda/side ./runners/work/doctor ./runners/backend/interleave \
	./runners/gather/scripted ./runners/work/search ./runners/tensor ./.ci/mutate ./.ci/sbom ./.ci/archive

# lint has vetted everything, and nobody debugs these programs: without debugging tables they link
# in two thirds of the time. The timeout is long, for a busy machine. CI runs every test again;
# elsewhere Go's cache skips the tests that a change cannot affect.
LEAN := -vet=off $(if $(CI),-count=1) -timeout=30m -ldflags='-s -w'

# The race detector watches all packages except PURE: these work on their arguments, and their only
# locks are those of package sync. A third of a story's time was spent there. (SQLite has its own
# locks, and encoding/json a cache that its callers share, so both must be watched.) The pointer
# checks of the detector apply only to our code. Stories mostly wait, so more of them run at once
# than there are cores.
PURE := regexp regexp/syntax unicode unicode/utf8 strconv compress/flate math/rand/v2 crypto/internal/fips140/bigmod \
	gopkg.in/yaml.v3 github.com/santhosh-tekuri/jsonschema/v6 github.com/kernelgate/kernelgate/gates/stats
RACE := -race $(LEAN) -p=3 -parallel=4 -gcflags=all=-d=checkptr=0 -gcflags=github.com/kernelgate/kernelgate/...= \
	$(foreach package,$(PURE),'-gcflags=$(package)=-d=checkptr=0 -race=false')

# Packages are tested in the order of this list, the slowest first, so that nothing waits for them
# at the end. A watched program does not wait a second for races before it exits. Half of the time
# is spent waiting, so everything runs at once, and the downloads run during the compilation. A
# package that fails while the machine is busy is tested again when nothing else runs (.ci/retest).
test: ## run everything: lint and all tests
	@$(MAKE) --no-print-directory -j8 setup lint
	@rm -rf bin/test && mkdir -p bin/test
	@$(IN_MEMORY) $(MAKE) --no-print-directory -j3 -k watched plain simulated || $(IN_MEMORY) .ci/retest bin/test

# Tests write and sync many small files: in memory that takes a third of the kernel's time. If the
# user may mount (root, as in most CIs) and 8 GiB are free, these processes get a private folder in
# memory for temporary files.
IN_MEMORY = $(shell awk '/^MemAvailable:/ && $$2 > 8e6 {print "yes"}' /proc/meminfo 2>/dev/null | grep -q yes && \
	unshare --mount mount -t tmpfs tests /mnt 2>/dev/null && echo unshare --mount .ci/in-memory)

WATCHED = ./bot/controller ./runners/backend/cuda ./bot/store/journal ./bot/serve ./bot/pages ./bot/github/client ./bot/github/webhook \
	$$(go list ./... | grep -vxF "$$(go list $(PLAIN) ./gates)")

.PHONY: watched plain simulated
watched: ## run the tests with the race detector (part of test)
	GORACE=atexit_sleep_ms=50 go test $(RACE) $(or $(ONLY),$(WATCHED)) | tee -i bin/test/watched

plain: ## run the tests that need no race detector (part of test)
	KERNELGATE_WATCHED=yes go test $(LEAN) $(or $(ONLY),$(PLAIN)) | tee -i bin/test/plain

# All of the bot's stories while GitHub's replicas lag; make test runs some of them this way.
.PHONY: lag-test
lag-test: ## run the bot's stories while GitHub's replicas lag
	KERNELGATE_LAG=yes go test -count=1 -timeout=30m ./bot/controller

simulated: ## simulate the error rates of the gate (part of test)
	go test $(LEAN) -v $(or $(ONLY),./gates) | grep -vE '^ *(=== |--- PASS)' | tee -i bin/test/simulated

# The documents' pictures: the demo, measured on this machine, in a headless Chromium.
.PHONY: screenshots
screenshots: setup ## take the pictures of the documents from the demo
	go test -count=1 -timeout=30m ./bot/demo -run '^(TestScreenshots|TestVerdictPicture)$$' -screenshots $(CURDIR)/.github

# Error rates, speeds and sizes; speeds are ratios within one run.
bench: ## measure error rates, speeds and sizes
	go test -v -run TestErrorRatesOfAllNoise ./gates -simulate 400 | grep -vE '^ *(=== |--- PASS)'
	go test -run '^$$' -bench . -benchtime 2s ./gates ./gates/stats ./runners/host/checkout ./runners/tensor ./runners/host/sandbox ./bot/github/webhook ./bot/store/journal ./bot/store/jobs ./bot/store/ledger ./bot/pages ./bot/serve ./bot/controller

# Every parser against random input, a minute each.
FUZZTIME ?= 60s
fuzz: ## try every parser with random input, FUZZTIME each
	@set -e; for package in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$package; \
	  done; done

# Real operation: units under systemd, every alert in Prometheus, a NATS server without disk space,
# a truncated journal, a power cut, the Kubernetes manifests, a rolling upgrade, packages, and images
# under podman. It needs root on Debian, takes ten minutes, and prints one line per result.
.PHONY: operate-test
operate-test: ## try operation for real: systemd, packages, images, alerts, full disks (root, Debian)
	@.ci/operate-test

# Random faults every EVERY while PULLS pull requests arrive in DURATION: three bots, three NATS servers and two runners on
# this machine (docs/reliability.md). It needs root, because it mounts disks that it fills. SEED draws the same faults
# again. RECORD=yes writes the figures into the document.
DURATION ?= 1h
PULLS ?= 1000
EVERY ?= 20s
.PHONY: soak
soak: ## let random faults happen to three bots for DURATION while PULLS pull requests arrive (root)
	@[ "$$(id -u)" = 0 ] || { echo "make soak needs root: it mounts disks, and fills them" >&2; exit 2; }
	@KERNELGATE_OPERATE=yes KERNELGATE_SOAK=$(DURATION) KERNELGATE_SOAK_PULLS=$(PULLS) KERNELGATE_SOAK_EVERY=$(EVERY) KERNELGATE_SOAK_SEED=$(SEED) \
	  KERNELGATE_SOAK_RECORD=$(if $(RECORD),docs/reliability.md) \
	  go test -count=1 -v -timeout=0 -run '^TestSoak$$' ./bot/cli | sed -u 's/^ *soak[a-z_]*\.go:[0-9]*: //; s/^result: //'

# Everything that a release contains, built without publishing or signing it, twice, and compared. The first call builds
# nfpm, which takes a minute or two.
.PHONY: release-dry-run
release-dry-run: ## build what a release contains, twice, and compare
	@.ci/release-dry-run

# Compiles small faults into the code that decides, and prints those that no test notices, with
# file and line, and the share of noticed faults. MUTATE takes flags, such as
# MUTATE='-seed 2 -packages gates,bot/publish'. It takes ten minutes on two cores.
.PHONY: mutate
mutate: ## find small faults that no test notices
	go run ./.ci/mutate $(MUTATE)

# Writes the attention kernel's choice by problem size from the recorded times of its variants.
.PHONY: choose
choose: ## write the choice of kernels/sdpa_fp8 from its evidence
	go test -count=1 ./runners/backend/cuda/sdpatest -run '^TestChoiceIsGenerated$$' -update

# Writes the tables of the attention kernel and its rivals into the pages that have a place for them.
.PHONY: rivals
rivals: ## write the attention kernel's tables from its evidence
	go test -count=1 ./runners/backend/cuda/sdpatest -run '^TestChoiceTable$$' -update

# What a host with a GPU needs: the programs, and the script that uses them. The host needs no Go.
.PHONY: gpu
gpu: ## build the programs for a host with a GPU, and print the script
	@mkdir -p bin/gpu
	@CGO_ENABLED=0 go build -ldflags="-s -w $(COMMIT)" -o bin/gpu/kernelgate .
	@CGO_ENABLED=0 go test -c -ldflags="-s -w" -o bin/gpu/cuda.test ./runners/backend/cuda
	@CGO_ENABLED=0 go test -c -ldflags="-s -w" -o bin/gpu/sdpa_fp8.test ./runners/backend/cuda/sdpatest
	@CGO_ENABLED=0 go test -c -ldflags="-s -w" -o bin/gpu/controller.test ./bot/controller
	@cat runners/backend/cuda/gpu.sh

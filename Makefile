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

PACKAGES := triton cutedsl numpy schemathesis

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
vet lint test test-long: export GOGC := 400

# Nobody debugs these programs, so none has debugging tables: that saves a minute of a compilation
# into an empty cache.
LEAN := -gcflags=all=-dwarf=false -ldflags='-s -w'

.PHONY: vet
vet: modules ## run gofmt and vet
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	go vet $(LEAN) ./... ./.ci/mutate ./.ci/sbom ./.ci/archive

# staticcheck reads all modules that we use: without its cache that takes three minutes of processor
# time, so it is part of test-long.
lint: vet ## run gofmt, vet and staticcheck
	go tool staticcheck ./... ./.ci/mutate ./.ci/sbom ./.ci/archive

# Every test once, without the race detector: with it, tests take three times as long, which does
# not fit into ten minutes on two cores. test-long has it, and the tests that take long. CI runs every
# test again; elsewhere Go's cache skips the tests that a change cannot affect. Stories mostly wait,
# so twice as many run as there are cores.
test: ## run gofmt, vet and all tests but the long ones
	@$(MAKE) --no-print-directory -j8 setup vet
	.ci/in-memory go test $(LEAN) -vet=off $(if $(CI),-count=1) -timeout=30m -parallel=$$((2 * $$(nproc))) ./... ./.ci/mutate ./.ci/sbom ./.ci/archive

# staticcheck, simulations, series of kills and faults, attacks on the clock, every compiler, and the
# race detector. It needs a machine that does nothing else.
.PHONY: test-long
test-long: setup lint ## run staticcheck, the long tests, and the others with the race detector
	@.ci/in-memory .ci/test-long

# All of the bot's stories while GitHub's replicas lag; make test-long runs some of them this way.
.PHONY: lag-test
lag-test: ## run the bot's stories while GitHub's replicas lag
	KERNELGATE_LAG=yes go test -count=1 -timeout=30m ./bot/controller

# The documents' pictures: the demo, measured on this machine, in a headless Chromium.
.PHONY: screenshots
screenshots: setup ## take the pictures of the documents from the demo
	go test -count=1 -timeout=30m ./bot/demo -run '^(TestScreenshots|TestVerdictPicture|TestPagePictures)$$' -screenshots $(CURDIR)/.github

# Error rates, speeds and sizes; speeds are ratios within one run.
bench: ## measure error rates, speeds and sizes
	KERNELGATE_LONG=yes go test -v -run TestErrorRatesOfAllNoise ./gates -simulate 400 | grep -vE '^ *(=== |--- PASS)'
	go test -run '^$$' -bench . -benchtime 2s ./gates ./gates/stats ./runners/host/checkout ./runners/tensor ./runners/host/sandbox ./runners/build/toolchain ./bot/github/webhook ./bot/store/journal ./bot/store/jobs ./bot/store/ledger ./bot/pages ./bot/serve ./bot/controller

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

# Writes the table of the attention kernel and its rivals into docs/sdpa_fp8.md.
.PHONY: rivals
rivals: ## write the attention kernel's table from its evidence
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

# Builds, tests and runs everything. Nothing but Go, make, a C compiler and git
# is needed; all dependencies come as Go modules.

GO      ?= go
BIN     := bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# The version of Kubernetes is that of the libraries: go.mod alone names it.
KUBERNETES := $(shell sed -n 's|.*k8s.io/component-base v0\.|v1.|p' go.mod)
MINOR   := $(word 2,$(subst ., ,$(KUBERNETES)))
LDFLAGS := -X k8s.io/component-base/version.gitVersion=$(KUBERNETES)-berth+$(VERSION) -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(MINOR) -X k8s.io/component-base/version.gitCommit=berth-$(VERSION) -X github.com/berth-scheduler/berth/scheduler.version=$(VERSION)
LABFLAGS := -X k8s.io/component-base/version.gitVersion=$(shell sed -n 's|.*k8s.io/kubernetes v1|v1|p' lab/go.mod) -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(MINOR) -X main.version=$(VERSION)
# The other minor version that Berth serves, whose API server lab/skew hosts.
OTHER   := $(shell sed -n 's|.*k8s.io/kubernetes v1|v1|p' lab/skew/go.mod)
SKEWFLAGS := -X k8s.io/component-base/version.gitVersion=$(OTHER) -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(OTHER)))
EPOCH   ?= $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null || echo 0))
NODES   ?= 100

.PHONY: help all build lab up test test-berth test-lab upstream skew page page-types page-axe picture check lint govulncheck gosec fuzz release image soak conform sim faults attack bench suite suites suites-quick community peers breaks clean

all: build lab

help: ## these lines
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' Makefile

build: ## bin/berth and bin/berth-scheduler
	@echo "building bin/berth and bin/berth-scheduler"
	@GO='$(GO)' tools/build.sh -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/...

lab: ## bin/berth-lab: a real control plane in one binary
	@echo "building bin/berth-lab: etcd, kube-apiserver, kube-controller-manager and KWOK from source; the first build takes about twelve minutes on two cores, later ones seconds"
	@cd lab && GO='$(GO)' ../tools/build.sh -ldflags '$(LABFLAGS)' -o ../$(BIN)/ ./cmd/berth-lab

up: build lab ## a cluster of $(NODES) nodes, Berth, and 1,000 pods to place
	$(BIN)/berth-lab up --nodes $(NODES) --sample

# The packages whose tests take longest come first: at the end they would run alone.
# The invariants make much garbage: GOGC=400 saves a quarter of the processor time.
# The lab's tests are not taken from the cache, which does not see the binaries that they
# build, and run without vet, of which check has more: all of Kubernetes would be vetted.
# "make -j2 test TESTFLAGS=-p=1" tests both modules at once, each one package at a time.
test: test-berth test-lab ## everything but long runs; BERTH_CHECK=1 checks every invariant after every step

test-berth:
	GOGC=400 BERTH_CHECK=1 $(GO) test $(TESTFLAGS) -timeout 30m ./tool ./sim ./...

test-lab:
	@echo "testing the lab; the first build compiles a Kubernetes control plane, about twelve minutes on two cores"
	cd lab && BERTH_CHECK=1 $(GO) test $(TESTFLAGS) -count=1 -vet=off -timeout 30m ./e2e ./conform ./...

upstream: ## the lists of what Berth states after kube-scheduler, anew from its source; TO=v1.38.0 prints what changes from this version to that one
	cd lab && $(GO) run ./cmd/upstream $(if $(TO),-version $(TO) -against $(KUBERNETES),-write ..)

page: ## edge/page/assets: the page of "berth view", of the sources in web and what is vendored there
	cd tools && $(GO) run ./bundle

page-types: ## the types of the page's sources, with Node and a compiler of TypeScript that npm fetches
	npm exec --yes --package=typescript@5.9.3 -- tsc -p web

AXE := $(abspath $(BIN))/axe/package/axe.min.js
AXE_SUM := 0f2b4d7dcdf7d1219df8d1959ad68e565f51d14c3f0d88bb71cd59abeb956292
$(AXE):
	mkdir -p $(BIN)/axe && cd $(BIN)/axe && npm pack --silent axe-core@4.10.3 && echo '$(AXE_SUM)  axe-core-4.10.3.tgz' | sha256sum --check && tar -xzf axe-core-4.10.3.tgz

page-axe: $(AXE) ## the accessibility of each view of the page, with Debian's package chromium and the library axe that npm fetches
	BERTH_AXE=$(AXE) $(GO) test -vet=off -count=1 -run TestEachView ./tool

picture: ## docs/page.png: the picture of the page in the README, with Debian's package chromium
	BERTH_README_PICTURE=$(CURDIR)/docs/page.png go test -vet=off -count=1 -run TestReadmePicture ./tool

check: ## formatting, vet, all modules tidy, and the page that is committed is that of its sources
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) mod tidy -diff
	cd lab && $(GO) mod tidy -diff
	cd tools && $(GO) mod tidy -diff
	cd tools && $(GO) run ./bundle -check
	$(GO) vet ./...
	cd lab && $(GO) vet ./...

lint: ## staticcheck on both modules, as tools/go.mod pins it; the first run takes minutes, later ones seconds
	GOGC=400 $(GO) tool -modfile=tools/go.mod staticcheck ./...
	cd lab && GOGC=400 $(GO) tool -modfile=../tools/go.mod staticcheck ./...

govulncheck: ## no known vulnerability in what the programs call; it asks vuln.go.dev and fails where that cannot be reached, or reads VULNDB=file:///FOLDER of OSV files
	$(GO) tool -modfile=tools/go.mod govulncheck $(if $(VULNDB),-db=$(VULNDB)) ./cmd/... ./scheduler/...

# G115 (conversions of integers) is left out: the core keeps dense ids in 32 bits
# and counts on bits, in 50 places; what comes from outside is bounded where it
# is decoded (core/resource, FuzzQuantity; edge/decode, FuzzKinds).
gosec: ## no unsafe habit in the code of the product; each exception says why in the code
	$(GO) tool -modfile=tools/go.mod gosec -quiet -tests=false -exclude=G115 -exclude-dir=lab -exclude-dir=tools ./...

FUZZTIME ?= 10m
FUZZ     := tool:FuzzCommands core/match:FuzzNodeSelector core/match:FuzzLabelSelector core/resource:FuzzQuantity core/resource:FuzzAddSub \
            edge/config:FuzzDecode edge/config:FuzzCheck edge/decode:FuzzKinds edge/extender:FuzzReplies edge/manifest:FuzzFiles \
            edge/manifest:FuzzLongNumber edge/manifest:FuzzTrim edge/recording:FuzzEntries sim/scenario:FuzzStory sim:FuzzBadObjects
fuzz: ## each fuzz target for FUZZTIME=10m; what breaks one is kept in its testdata/fuzz. First 10,000 mutated clusters: commands end, fixes hold
	$(GO) test -timeout 0 ./tool -run 'FuzzCommands$$' -count=1 -mutations 10000
	$(GO) test -timeout 0 ./sim/whatif -run 'TestFixesOfMutatedCasesHold$$' -count=1 -v -mutations 10000
	@for target in $(FUZZ); do echo "== $$target"; \
	  BERTH_CHECK=1 $(GO) test -timeout 30m ./$${target%%:*} -run '^$$' -fuzz "^$${target##*:}$$" -fuzztime $(FUZZTIME) || exit 1; done

release: ## dist/: archives, man pages, completions, SBOMs, chart, krew manifest (VERSION=v1.2.3), image and checksums for linux/amd64 and linux/arm64; the same bytes for the same VERSION, commit and Go
	cd tools && $(GO) run ./release -version $(VERSION) -epoch $(EPOCH)

image: ## dist/image: an OCI layout of berth-scheduler for both architectures, without a daemon; push it with crane, skopeo or oras
	cd tools && $(GO) run ./release -version $(VERSION) -epoch $(EPOCH) -only image

soak: ## a million random events: no kept view differs from a fresh evaluation; EVENTS=, SEED=
	$(GO) test ./core/engine -run 'TestSoak$$' -count=1 -v -timeout 0 -events $(or $(EVENTS),1000000) -soak-seed $(or $(SEED),1)

conform: lab ## every decision beside kube-scheduler's; SEEDS=1-500
	$(BIN)/berth-lab conform --seeds $(or $(SEEDS),1-50)

sim: lab ## whole schedulers over an API server in memory, with faults that a seed decides; SEEDS=1-300, WITH=groups,quotas for gangs and quotas
	$(BIN)/berth-lab sim --seeds $(or $(SEEDS),1-300) $(if $(WITH),--with $(WITH))

faults: build lab ## faults of kube-scheduler that Berth does not have, shown live
	$(BIN)/berth-lab faults

attack: build lab ## attacks on a daemon and on the tool: memory, pace, rights and output hold; ONLY=^endpoint/
	$(BIN)/berth-lab attack --only '$(ONLY)'

suites: build lab ## Kubernetes' own tests of scheduling with Berth in kube-scheduler's place, about 40 minutes; ONLY='scheduler/filters '
	cd lab && $(GO) run ./cmd/suites --only '$(ONLY)'

suites-quick: ## a few of them, in less than three minutes
	cd lab && $(GO) run ./cmd/suites --quick

breaks: ## break Berth on purpose, one rule at a time: the comparison has to see it; ONLY=PodTopologySpread
	cd lab && $(GO) run ./cmd/breaks --only '$(ONLY)'

peers: ## bin/peers: kube-scheduler v1.35 with Coscheduling and CapacityScheduling of scheduler-plugins, for `berth-lab bench gangs --peers`; it downloads those modules
	cd lab/cmd/peers && $(GO) build -o ../../../$(BIN)/ .

community: ## a scheduler plugin of others, Coscheduling of scheduler-plugins, with the Less that v1.37 asks for, in Berth on a real API server; it downloads that module
	cd lab && $(GO) vet -tags community ./e2e
	cd lab && $(GO) test -tags community -count=1 -v -timeout 30m -run 'TestCoscheduling$$' ./e2e

# What runs beside the other minor: binding, volumes, devices, preemption, events, endpoints
# and restarts. The other tests in lab/e2e are about Berth or about this minor alone.
SKEWED := ^Test(UpgradeAndDowngrade|ChaosOfUpgrades|UnservedAPIs|Placement|NodesGoAndReturn|Preemption|NominatedAntiAffinity|Volumes|VolumesAreMade|DeviceClaims|ExtendedResources|Replicas|Endpoints|BadObjects|APIServerRestart|OlderAPIServer)$$
skew: ## Berth beside an API server of the other minor that it serves, and while it is upgraded and downgraded; the first build takes about ten minutes on two cores. ONLY=^TestUnservedAPIs
	cd lab/skew && $(GO) mod tidy -diff && GO='$(GO)' ../../tools/build.sh -ldflags '$(SKEWFLAGS)' -o ../../$(BIN)/berth-lab-skew .
	cd lab && $(GO) test -ldflags '$(LABFLAGS)' -count=1 -v -timeout 60m ./e2e -run '$(or $(ONLY),$(SKEWED))' -skew $(CURDIR)/$(BIN)/berth-lab-skew

suite: build lab ## one workload of each of the suite's test cases in mode cluster, 3,000 measured pods each at most; a Markdown table
	$(BIN)/berth-lab bench --suite --pods 3000 --mode cluster -o markdown

bench: build lab ## against kube-scheduler, in turn, in one run
	$(BIN)/berth-lab bench --workload SchedulingBasic/5000Nodes_10000Pods --mode decide
	$(BIN)/berth-lab bench --workload SchedulingBasic/5000Nodes_10000Pods --mode cluster

clean:
	rm -rf $(BIN) dist

# Every target is one command that also works by itself. `make` alone prints this list.
.DEFAULT_GOAL := help
SHELL := /bin/sh

LINT := bin/golangci-lint

# Everything is compiled as it is released, so that programs, tests, images and other checkouts share what is
# compiled.
export CGO_ENABLED ?= 0
export GOFLAGS ?= -trimpath

# A developer's program is built in its own module and runs here.
tool = { [ "$$(uname -s)" = Linux ] || { echo "make $@ needs Linux, best Debian or Ubuntu" >&2; exit 1; }; } && go build -C hack -o ../bin/ ./$(1) && exec bin/$(1)

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: up
up: ## Start a whole Registrar on this machine until Ctrl-C (DETACH=1: in the background)
	@$(call tool,up) $(if $(DETACH),-detach)

.PHONY: down
down: ## Stop what `make up` started
	@$(call tool,up) -down

.PHONY: kube-up
kube-up: ## Start a Kubernetes with the operator beside `make up`, in the background
	@$(call tool,up) -kube -detach

.PHONY: kube-down
kube-down: ## Stop what `make kube-up` started
	@$(call tool,up) -kube -down

.PHONY: test
test: ## Run all tests on real servers (ARGS='-run Name ./folder' runs some)
	@$(call tool,test) -- $(ARGS)

.PHONY: check
check: ## Run the tests that need no Kubernetes, no images and no Chromium
	@$(call tool,test) -check -- $(ARGS)

.PHONY: fuzz
fuzz: ## Fuzz what decodes foreign bytes, each target for 30 s (FUZZTIME=5m)
	hack/fuzz

.PHONY: vulncheck
vulncheck: ## Ask the Go vulnerability database about what the programs call (GOVULNDB=vulndb.zip: a copy)
	@$(call tool,vulncheck)

.PHONY: lint
lint: $(LINT) ## Run the linters of .golangci.yml
	$(LINT) run
	cd hack && ../$(LINT) run

.PHONY: generate
generate: ## Generate code again
	go generate ./...
	go generate -C hack ./...

.PHONY: verify
verify: $(LINT) ## Check vet, format, modules, generated code and the linter's configuration
	go vet ./...
	go vet -C hack ./...
	@test -z "$$(gofmt -l .)" || { echo 'Run gofmt -w on:'; gofmt -l .; exit 1; }
	go mod tidy -diff
	go mod tidy -C hack -diff
	$(LINT) config verify
	hack/verify-generated

.PHONY: docs
docs: ## Write the documentation into bin/docs, as a site for any web server
	rm -rf bin/docs
	go run ./api-server/internal/docsite/write bin/docs

.PHONY: images
images: ## Build the container images without Docker, into bin/images (ARGS='-arch amd64 -tag dev worker')
	@$(call tool,images) $(ARGS)

.PHONY: release
release: ## Build a release into dist, check it and install from it (VERSION=1.2.3, ARGS=-install=false)
	@$(call tool,release) $(ARGS) $(VERSION)

.PHONY: bench
bench: ## Measure a whole Registrar on this machine (ARGS='-list', ARGS='-scale 0.1 webhook-idle')
	@$(call tool,bench) $(ARGS)

.PHONY: soak
soak: ## Break a whole Registrar under load for 90 minutes and check it against a model (ARGS='-for 4m')
	@$(call tool,soak) $(ARGS)

# The linter, with that of Kubernetes' APIs built in, is a tool of a module of its own, so that its dependencies never reach
# the programs.
$(LINT): hack/tools/go.mod hack/tools/go.sum
	@mkdir -p bin
	go build -modfile=hack/tools/go.mod -o $@ sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter

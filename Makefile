# ckscale. `make` or `make help` lists the targets.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
BIN := bin/server
# Packages with golden files; go test -update writes them anew.
GOLDEN = $(shell grep -rlE 'flag.Bool."update"' --include='*_test.go' . | xargs -r -n1 dirname | sort -u)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: run
run: build ## build and start everything, with an embedded PostgreSQL and a demo cluster
	@exec $(BIN)

.PHONY: build
build: ## build the static binary bin/server
	CGO_ENABLED=0 go build -trimpath -o $(BIN) ./cmd/server

.PHONY: test
test: ## run all tests (a local PostgreSQL, or TEST_DATABASE_URL, or Docker); most of the time they wait, hence -parallel
	go test -race -shuffle=on -parallel=6 -timeout=20m ./...

.PHONY: bench
bench: ## measure how fast the server reacts to the cloud
	go test ./cmd/server -run '^$$' -bench . -benchtime=10x

.PHONY: fuzz
fuzz: ## feed the parsers, the signature, the encoder and the removal order with what nobody would send; FUZZTIME=10s each
	@grep -roE '^func Fuzz\w+' --include='*_test.go' . | while IFS=: read -r file found; do \
		go test "$$(dirname "$$file")" -run '^$$' -fuzz "^$${found#func }$$" -fuzztime $${FUZZTIME:-10s} -fuzzminimizetime 10x; \
	done

.PHONY: soak
soak: ## play random scripts of requests, faults and crashes against the model for SOAK=10m; SEED=n plays those of a seed
	go test ./internal/model -race -run TestModel -v -timeout 0 -count=1 -budget $${SOAK:-10m} $(if $(SEED),-rapid.seed $(SEED))

.PHONY: replay
replay: ## play one script of the model again, line by line: SCRIPT=file
	go test ./internal/model -run TestScripts -v -count=1 -script $(abspath $(SCRIPT))

.PHONY: lab
lab: build ## try the scenarios of the lab report on a live server, and write docs/lab.md
	go run ./cmd/lab -server $(BIN) -o docs/lab.md

.PHONY: chaos
chaos: ## kill and pause three servers while 20 clients scale 50 clusters, and check all that they were told; SEED=n, DURATION=1m
	go run ./cmd/chaos -seed $${SEED:-0} -duration $${DURATION:-1m}

.PHONY: lint
lint: ## check the format, go vet, staticcheck, known vulnerabilities, and that SQL is made of constants only
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "gofmt -w is needed for:" $$unformatted >&2; exit 1; fi
	go vet ./...
	go tool -modfile=tools/go.mod staticcheck ./...
	go test ./internal/store -count=1 -run 'TestSQLIsMadeOfConstants|TestUnsafeSQLIsFound'
	@scripts/vulncheck

.PHONY: vulncheck
vulncheck: ## look for known vulnerabilities in the code that we call; asks vuln.go.dev, or the database at VULNDB
	@scripts/vulncheck

.PHONY: generate
generate: ## write generated code and golden files anew
	go generate ./...
	@$(if $(strip $(GOLDEN)),go test $(GOLDEN) -update,true)

.PHONY: verify
verify: generate ## check that generated files, golden files and modules are as committed
	git diff --exit-code
	go mod tidy -diff
	go mod verify

.PHONY: up
up: build ## build the image and start it with PostgreSQL, by Docker
	$(COMPOSE) up -d --build
	@echo "http://127.0.0.1:$${CKSCALE_PORT:-8080}/client/api is being served; its keys: $(COMPOSE) logs server"

# The plugin of today's Docker, else the program of older ones.
COMPOSE = $(shell if docker compose version >/dev/null 2>&1; then echo docker compose; else echo docker-compose; fi)

module peers/gopools

go 1.26.3

toolchain go1.26.8

require (
	github.com/alitto/pond/v2 v2.7.1
	github.com/panjf2000/ants/v2 v2.12.1
	github.com/sourcegraph/conc v0.3.0
)

require golang.org/x/sync v0.11.0 // indirect

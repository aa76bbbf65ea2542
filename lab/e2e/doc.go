// Package e2e tests the lab and what runs on it end to end, against a real
// control plane. The test binary hosts the control plane's processes itself.
// `go test -short` leaves these tests out.
package e2e

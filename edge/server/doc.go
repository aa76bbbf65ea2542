// Package server is the scheduler's own HTTPS endpoint: whether it is healthy
// and ready, its metrics, its configuration and its profiles. The API server
// authenticates and authorises every request for more than health.
package server

// Package server is the scheduler's own HTTPS endpoint: whether it is healthy
// and ready, its metrics, its configuration and its profiles. Who asks for more
// than health is authenticated and authorised by the API server.
package server

package kube

import (
	"os"
	"strconv"
	"time"
)

// A connection that brought nothing for silentAfter is asked with a PING of HTTP/2, and is
// closed if nothing comes within pongWithin. Whoever waits for an answer on it then gets an
// error: a pod whose binding got no reply is read, and bound to the same node if it is not
// bound. client-go's own times are 30 s and 15 s.
const (
	silentAfter = 2 * time.Second
	pongWithin  = 2 * time.Second
)

// DetectSilentConnections makes the HTTP/2 connections that this process opens through
// client-go from now on notice within silentAfter and pongWithin that the other end is
// gone. It sets the environment variables that client-go reads, unless they are set. Call it
// before the first connection.
func DetectSilentConnections() error {
	for name, wait := range map[string]time.Duration{ // any order: each by itself
		"HTTP2_READ_IDLE_TIMEOUT_SECONDS": silentAfter,
		"HTTP2_PING_TIMEOUT_SECONDS":      pongWithin,
	} {
		if os.Getenv(name) != "" {
			continue
		}
		if err := os.Setenv(name, strconv.Itoa(int(wait.Seconds()))); err != nil {
			return err
		}
	}
	return nil
}

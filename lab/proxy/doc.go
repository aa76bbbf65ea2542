// Package proxy stands between a client and kube-apiserver and makes the
// trouble that networks and servers make: a reply that is lost after the
// request took effect, a watch that freezes, an error in the server's place.
// The client talks TLS to it as it would to the server; the proxy talks to the
// server under the client's identity, and keeps account of what went through.
package proxy

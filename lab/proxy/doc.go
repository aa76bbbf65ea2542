// Package proxy stands between a client and kube-apiserver and makes the faults
// of networks and servers: a reply is lost after the request took effect, a
// watch freezes, an error comes instead of the server's reply. The client talks
// TLS to the proxy as to the server. The proxy talks to the server under the
// client's identity, and records what went through.
package proxy

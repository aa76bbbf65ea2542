// Package deploy embeds the manifests that a cluster needs to run Berth, so that
// a user and the lab install the same file.
package deploy

import _ "embed"

// RBAC is rbac.yaml: the service account of berth-scheduler, the user name it
// has outside the cluster, and the rights that both are bound to.
//
//go:embed rbac.yaml
var RBAC []byte

// FlowControl is flowcontrol.yaml: the priority that the API server gives the
// requests of these identities.
//
//go:embed flowcontrol.yaml
var FlowControl []byte

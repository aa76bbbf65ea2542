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

// PodGroups is podgroups.yaml: the PodGroups of the plugin Coscheduling, and Berth's right to them.
//
//go:embed podgroups.yaml
var PodGroups []byte

// ElasticQuotas is elasticquotas.yaml: the quotas of the plugin CapacityScheduling, and Berth's right to them.
//
//go:embed elasticquotas.yaml
var ElasticQuotas []byte

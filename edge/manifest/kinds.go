package manifest

import "github.com/berth-scheduler/berth/edge/decode"

// kinds by apiVersion/kind. Every other kind is counted and left alone.
var kinds = func() map[string]*decode.Kind {
	byKey := map[string]*decode.Kind{}
	for i := range decode.Kinds {
		byKey[decode.Kinds[i].Key()] = &decode.Kinds[i]
	}
	return byKey
}()

// makesPods holds the kinds, by apiVersion/kind, of which people may expect
// that their pods are placed.
var makesPods = map[string]bool{
	"v1/ReplicationController": true,
	"apps/v1/Deployment":       true,
	"apps/v1/ReplicaSet":       true,
	"apps/v1/StatefulSet":      true,
	"apps/v1/DaemonSet":        true,
	"batch/v1/Job":             true,
	"batch/v1/CronJob":         true,
}

package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/spelling"
)

// kinds by apiVersion/kind: those that a scheduler reads, those that controllers
// make pods and claims of, and those that admission goes by. Every other kind is counted and left
// alone.
var kinds = func() map[string]*decode.Kind {
	byKey := map[string]*decode.Kind{}
	for i := range decode.Kinds {
		byKey[decode.Kinds[i].Key()] = &decode.Kinds[i]
	}
	for i := range Controllers {
		byKey[Controllers[i].Key()] = &Controllers[i]
	}
	for i := range Events {
		byKey[Events[i].Key()] = &Events[i]
	}
	for i := range admitting {
		byKey[admitting[i].Key()] = &admitting[i]
	}
	return byKey
}()

// Controllers are the kinds that only controllers read.
var Controllers = []decode.Kind{
	controllerKind(appsv1.SchemeGroupVersion, "Deployment", "deployments", func() metav1.Object { return &appsv1.Deployment{} }),
	controllerKind(appsv1.SchemeGroupVersion, "DaemonSet", "daemonsets", func() metav1.Object { return &appsv1.DaemonSet{} }),
	controllerKind(batchv1.SchemeGroupVersion, "Job", "jobs", func() metav1.Object { return &batchv1.Job{} }),
	controllerKind(batchv1.SchemeGroupVersion, "CronJob", "cronjobs", func() metav1.Object { return &batchv1.CronJob{} }),
	claimTemplate,
}

var claimTemplate = controllerKind(resourcev1.SchemeGroupVersion, "ResourceClaimTemplate", "resourceclaimtemplates", func() metav1.Object { return &resourcev1.ResourceClaimTemplate{} })

// OfNewPods are the kinds that matter to new pods alone.
var OfNewPods = append(slices.Clone(admitting), claimTemplate)

// admitting are the kinds that admission alone goes by.
var admitting = []decode.Kind{
	controllerKind(v1.SchemeGroupVersion, "LimitRange", "limitranges", func() metav1.Object { return &v1.LimitRange{} }),
	controllerKind(v1.SchemeGroupVersion, "ResourceQuota", "resourcequotas", func() metav1.Object { return &v1.ResourceQuota{} }),
	{GroupVersion: nodev1.SchemeGroupVersion, Name: "RuntimeClass", Resource: "runtimeclasses", New: func() metav1.Object { return &nodev1.RuntimeClass{} }},
}

func controllerKind(version schema.GroupVersion, name, resource string, empty func() metav1.Object) decode.Kind {
	return decode.Kind{GroupVersion: version, Name: name, Resource: resource, Namespaced: true, New: empty}
}

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

// farthestKind is how far the name of a kind may be from that of another to be taken for it.
const farthestKind = 2

// misspeltKind returns an error for a kind that its version of the API does not have, if one
// that it has is spelt nearly so. Kinds of other APIs are not known.
func misspeltKind(apiVersion, kind string) error {
	version, err := schema.ParseGroupVersion(apiVersion)
	known := decode.SchemeOf(version)
	if err != nil || len(kind) > longestName || known.Recognizes(version.WithKind(kind)) || !known.IsVersionRegistered(version) {
		return nil
	}
	best, least := "", farthestKind+1
	for _, name := range slices.Sorted(maps.Keys(known.KnownTypes(version))) {
		if d := spelling.Distance(strings.ToLower(name), strings.ToLower(kind)); d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return nil // a later version may have it
	}
	return fmt.Errorf("kind: %s has no %s; did you mean %s?", apiVersion, kind, best)
}

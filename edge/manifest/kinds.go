package manifest

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berth-scheduler/berth/edge/decode"
)

// kinds by apiVersion/kind: those that a scheduler reads, those that controllers
// make pods and claims of, and those that admission goes by. Every other kind is counted and left
// alone.
var kinds = func() map[string]*decode.Kind {
	byKey := map[string]*decode.Kind{}
	for i := range decode.Kinds {
		byKey[decode.Kinds[i].Key()] = &decode.Kinds[i]
	}
	for i := range expanded {
		byKey[expanded[i].Key()] = &expanded[i]
	}
	for i := range Admission {
		byKey[Admission[i].Key()] = &Admission[i]
	}
	return byKey
}()

// expanded are the kinds that only controllers read.
var expanded = []decode.Kind{
	controllerKind(appsv1.SchemeGroupVersion, "Deployment", "deployments", func() metav1.Object { return &appsv1.Deployment{} }),
	controllerKind(appsv1.SchemeGroupVersion, "DaemonSet", "daemonsets", func() metav1.Object { return &appsv1.DaemonSet{} }),
	controllerKind(batchv1.SchemeGroupVersion, "Job", "jobs", func() metav1.Object { return &batchv1.Job{} }),
	controllerKind(batchv1.SchemeGroupVersion, "CronJob", "cronjobs", func() metav1.Object { return &batchv1.CronJob{} }),
	ClaimTemplates,
}

// ClaimTemplates are those that controllers make claims for devices of.
var ClaimTemplates = controllerKind(resourcev1.SchemeGroupVersion, "ResourceClaimTemplate", "resourceclaimtemplates", func() metav1.Object { return &resourcev1.ResourceClaimTemplate{} })

// Admission are the kinds that admission alone goes by.
var Admission = []decode.Kind{
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

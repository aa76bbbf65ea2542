package kube

import (
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// watcherOf returns the REST client that lists and watches objects of the kind, by the
// kind's group and version; nil if no client is for these.
func (c *Clients) watcherOf(kind object.Kind) rest.Interface {
	for _, client := range []rest.Interface{c.Watch, c.Storage, c.Devices, c.Groups, c.Custom} {
		if client.APIVersion() == kind.GroupVersion() {
			return client
		}
	}
	return nil
}

// versionOf returns where the version of resource.k8s.io is kept in which the API server
// serves the resource of that group.
func (c *Clients) versionOf(resource string) *deviceVersion {
	if resource == object.DeviceTaintRules.Resource() {
		return &c.taintRules
	}
	return &c.devices
}

// writerOf returns the client that creates, patches and deletes objects of the kind; nil
// if the scheduler never writes them.
func (c *Clients) writerOf(kind object.Kind) rest.Interface {
	switch kind {
	case object.PersistentVolumeClaims, object.PersistentVolumes:
		return c.Volumes
	case object.ResourceClaims:
		return c.Claims
	case object.Pods:
		return c.Status
	}
	return nil
}

// objects returns a store that watches the objects of a kind that only some plugins read, such
// as PersistentVolumes, and posts ObjectSet and ObjectGone.
func (w *Watcher) objects(c *Clients, kind object.Kind, post func(machine.Event)) *store {
	m := newStore(kind.Resource(), post, w.guarded(entries(w.objectSet), nil), func(o owner) machine.Event {
		return machine.ObjectGone{Kind: kind, Namespace: o.Namespace, Name: o.Name}
	})
	m.kind = &kind
	if client := c.watcherOf(kind); client.APIVersion() == resourcev1.SchemeGroupVersion {
		m.reflectBy(c.versionOf(kind.Resource()).listWatch(client, kind.Resource()), client, decode.Empty(kind), w.logger)
	} else {
		m.reflect(client, decode.Empty(kind), "", w.logger)
	}
	return m
}

// objectSet returns the ObjectSet event for an API object; nil if its type is unknown. It
// counts an ElasticQuota that cannot be read in BadObjects.
func (w *Watcher) objectSet(o metav1.ObjectMetaAccessor) machine.Event {
	read := decode.Object(o)
	if read == nil {
		return nil
	}
	if q, is := read.(*object.ElasticQuota); is && q.Unreadable != "" {
		w.bad.Add(1) // the machine reports it
	}
	return machine.ObjectSet{Object: read}
}

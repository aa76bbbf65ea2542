package kube

import (
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// endpoint is where the API has objects of a kind.
type endpoint struct {
	watch func(*Clients) rest.Interface
	// write is how they are made, patched and deleted; nil: nobody does.
	write func(*Clients) rest.Interface
}

func watchCore(c *Clients) rest.Interface    { return c.Watch }
func watchStorage(c *Clients) rest.Interface { return c.Storage }
func writeVolumes(c *Clients) rest.Interface { return c.Volumes }
func watchDevices(c *Clients) rest.Interface { return c.Devices }
func watchTaints(c *Clients) rest.Interface  { return c.Taints }
func writeClaims(c *Clients) rest.Interface  { return c.Claims }
func writeStatus(c *Clients) rest.Interface  { return c.Status }

var endpoints = [object.Kinds + 1]endpoint{
	object.PersistentVolumeClaims: {watchCore, writeVolumes},
	object.PersistentVolumes:      {watchCore, writeVolumes},
	object.StorageClasses:         {watchStorage, nil},
	object.CSINodes:               {watchStorage, nil},
	object.CSIDrivers:             {watchStorage, nil},
	object.CSIStorageCapacities:   {watchStorage, nil},
	object.VolumeAttachments:      {watchStorage, nil},
	object.ResourceClaims:         {watchDevices, writeClaims},
	object.ResourceSlices:         {watchDevices, nil},
	object.DeviceClasses:          {watchDevices, nil},
	object.DeviceTaintRules:       {watchTaints, nil},
	object.Pods:                   {nil, writeStatus},
}

// objects watches the objects of a kind.
func (w *Watcher) objects(c *Clients, kind object.Kind, post func(machine.Event)) *store {
	at := endpoints[kind]
	m := newStore(kind.Resource(), post, w.guarded(entries(objectSet), nil), func(o owner) machine.Event {
		return machine.ObjectGone{Kind: kind, Namespace: o.Namespace, Name: o.Name}
	})
	m.kind = &kind
	if client := at.watch(c); client.APIVersion() == resourcev1.SchemeGroupVersion {
		m.reflectBy(c.devices.listWatch(client, kind.Resource()), client, decode.Empty(kind), w.logger)
	} else {
		m.reflect(client, decode.Empty(kind), "", w.logger)
	}
	return m
}

func objectSet(o metav1.ObjectMetaAccessor) machine.Event {
	if read := decode.Object(o); read != nil {
		return machine.ObjectSet{Object: read}
	}
	return nil
}

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
	resource string
	watch    func(*Clients) rest.Interface
	// write is how they are made, patched and deleted; nil: nobody does.
	write func(*Clients) rest.Interface
}

func watchCore(c *Clients) rest.Interface    { return c.Watch }
func watchStorage(c *Clients) rest.Interface { return c.Storage }
func writeVolumes(c *Clients) rest.Interface { return c.Volumes }
func watchDevices(c *Clients) rest.Interface { return c.Devices }
func writeClaims(c *Clients) rest.Interface  { return c.Claims }
func writeStatus(c *Clients) rest.Interface  { return c.Status }

var endpoints = [object.Kinds + 1]endpoint{
	object.PersistentVolumeClaims: {"persistentvolumeclaims", watchCore, writeVolumes},
	object.PersistentVolumes:      {"persistentvolumes", watchCore, writeVolumes},
	object.StorageClasses:         {"storageclasses", watchStorage, nil},
	object.CSINodes:               {"csinodes", watchStorage, nil},
	object.CSIDrivers:             {"csidrivers", watchStorage, nil},
	object.CSIStorageCapacities:   {"csistoragecapacities", watchStorage, nil},
	object.VolumeAttachments:      {"volumeattachments", watchStorage, nil},
	object.ResourceClaims:         {"resourceclaims", watchDevices, writeClaims},
	object.ResourceSlices:         {"resourceslices", watchDevices, nil},
	object.DeviceClasses:          {"deviceclasses", watchDevices, nil},
	object.Pods:                   {"pods", nil, writeStatus},
}

// objects watches the objects of a kind.
func (s *Source) objects(c *Clients, kind object.Kind, post func(machine.Event)) *mirror {
	at := endpoints[kind]
	m := newMirror(at.resource, post, s.guarded(entries(objectSet), nil), func(o owner) machine.Event {
		return machine.ObjectGone{Kind: kind, Namespace: o.Namespace, Name: o.Name}
	})
	m.kind = &kind
	if client := at.watch(c); client.APIVersion().Group == resourcev1.GroupName {
		m.reflectBy(c.devices.listWatch(client, at.resource), client, decode.Empty(kind), s.logger)
	} else {
		m.reflect(client, decode.Empty(kind), "", s.logger)
	}
	return m
}

func objectSet(o metav1.ObjectMetaAccessor) machine.Event {
	if read := decode.Object(o); read != nil {
		return machine.ObjectSet{Object: read}
	}
	return nil
}

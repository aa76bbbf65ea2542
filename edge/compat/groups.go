package compat

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/apiserverinternal"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/autoscaling"
	"k8s.io/client-go/informers/batch"
	"k8s.io/client-go/informers/certificates"
	"k8s.io/client-go/informers/coordination"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/discovery"
	"k8s.io/client-go/informers/events"
	"k8s.io/client-go/informers/extensions"
	"k8s.io/client-go/informers/flowcontrol"
	"k8s.io/client-go/informers/networking"
	"k8s.io/client-go/informers/node"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/rbac"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/informers/storagemigration"
)

// The informers of each group of the API, made through the factory, so that it records their
// handlers. Those of the embedded factory would bypass it.

// all stands for all namespaces, as the informers' constructors take it.
const all = metav1.NamespaceAll

// Admissionregistration returns the informers of the API group admissionregistration, made through f.
func (f *factory) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(f, all, nil)
}

// Internal returns the informers of the API group apiserverinternal, made through f.
func (f *factory) Internal() apiserverinternal.Interface { return apiserverinternal.New(f, all, nil) }

// Apps returns the informers of the API group apps, made through f.
func (f *factory) Apps() apps.Interface { return apps.New(f, all, nil) }

// Autoscaling returns the informers of the API group autoscaling, made through f.
func (f *factory) Autoscaling() autoscaling.Interface { return autoscaling.New(f, all, nil) }

// Batch returns the informers of the API group batch, made through f.
func (f *factory) Batch() batch.Interface { return batch.New(f, all, nil) }

// Certificates returns the informers of the API group certificates, made through f.
func (f *factory) Certificates() certificates.Interface { return certificates.New(f, all, nil) }

// Coordination returns the informers of the API group coordination, made through f.
func (f *factory) Coordination() coordination.Interface { return coordination.New(f, all, nil) }

// Core returns the informers of the API group core, made through f.
func (f *factory) Core() core.Interface { return core.New(f, all, nil) }

// Discovery returns the informers of the API group discovery, made through f.
func (f *factory) Discovery() discovery.Interface { return discovery.New(f, all, nil) }

// Events returns the informers of the API group events, made through f.
func (f *factory) Events() events.Interface { return events.New(f, all, nil) }

// Extensions returns the informers of the API group extensions, made through f.
func (f *factory) Extensions() extensions.Interface { return extensions.New(f, all, nil) }

// Flowcontrol returns the informers of the API group flowcontrol, made through f.
func (f *factory) Flowcontrol() flowcontrol.Interface { return flowcontrol.New(f, all, nil) }

// Networking returns the informers of the API group networking, made through f.
func (f *factory) Networking() networking.Interface { return networking.New(f, all, nil) }

// Node returns the informers of the API group node, made through f.
func (f *factory) Node() node.Interface { return node.New(f, all, nil) }

// Policy returns the informers of the API group policy, made through f.
func (f *factory) Policy() policy.Interface { return policy.New(f, all, nil) }

// Rbac returns the informers of the API group rbac, made through f.
func (f *factory) Rbac() rbac.Interface { return rbac.New(f, all, nil) }

// Resource returns the informers of the API group resource, made through f.
func (f *factory) Resource() resource.Interface { return resource.New(f, all, nil) }

// Scheduling returns the informers of the API group scheduling, made through f.
func (f *factory) Scheduling() scheduling.Interface { return scheduling.New(f, all, nil) }

// Storage returns the informers of the API group storage, made through f.
func (f *factory) Storage() storage.Interface { return storage.New(f, all, nil) }

// Storagemigration returns the informers of the API group storagemigration, made through f.
func (f *factory) Storagemigration() storagemigration.Interface {
	return storagemigration.New(f, all, nil)
}

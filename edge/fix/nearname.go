package fix

import (
	"fmt"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/spelling"
)

// MeantObject returns the name of an object that somebody may mean who names another one, which
// is not there: the first by name; "" if there is none.
func MeantObject(t *table.Table, kind object.Kind, namespace, name string) string {
	for _, o := range t.Objects().List(kind) {
		if head := o.Head(); head.Namespace == namespace && spelling.Near(name, head.Name) {
			return head.Name
		}
	}
	return ""
}

// meantClaim has the pod use a claim that is there; nil where no name is near, and where a
// controller gives the claim its name.
func meantClaim(t *table.Table, p *object.Pod, spec *v1.PodSpec, v *object.Volume) []edit {
	if v.Ephemeral || strings.HasSuffix(v.Claim, "-"+p.Name) {
		return nil
	}
	meant := MeantObject(t, object.PersistentVolumeClaims, p.Namespace, v.Claim)
	place := slices.IndexFunc(spec.Volumes, func(o v1.Volume) bool {
		return o.PersistentVolumeClaim != nil && o.PersistentVolumeClaim.ClaimName == v.Claim
	})
	if meant == "" || place < 0 {
		return nil
	}
	return []edit{{kind: correctName, say: fmt.Sprintf("use the claim %s in place of %s", meant, v.Claim),
		ops: []Op{{Op: "replace", Path: at("/spec/volumes/%d/persistentVolumeClaim/claimName", place), Value: meant}}}}
}

// meantDeviceClaim has the pod use a claim for devices that is there; nil where no name is near.
func meantDeviceClaim(t *table.Table, p *object.Pod, spec *v1.PodSpec, pc *object.PodClaim) []edit {
	meant := MeantObject(t, object.ResourceClaims, p.Namespace, pc.Claim)
	place := slices.IndexFunc(spec.ResourceClaims, func(o v1.PodResourceClaim) bool {
		return o.ResourceClaimName != nil && *o.ResourceClaimName == pc.Claim
	})
	if meant == "" || place < 0 {
		return nil
	}
	return []edit{{kind: correctName, say: fmt.Sprintf("use the ResourceClaim %s in place of %s", meant, pc.Claim),
		ops: []Op{{Op: "replace", Path: at("/spec/resourceClaims/%d/resourceClaimName", place), Value: meant}}}}
}

// correctClass makes the claim of a class that is there.
func correctClass(c *object.PersistentVolumeClaim, meant string) edit {
	return edit{kind: correctName, target: claimTarget(c), say: fmt.Sprintf("make claim %s anew with the class %s in place of %s", c.Name, meant, c.Class),
		ops: []Op{{Op: "replace", Path: "/spec/storageClassName", Value: meant}}}
}

// correctDeviceClass has each request of the claim that names a class ask for another one.
func correctDeviceClass(c *object.ResourceClaim, wrong, meant string) (edits []edit) {
	of := target{"resource.k8s.io/v1", "ResourceClaim", c.Namespace, c.Name}
	correct := func(request, path string) {
		edits = append(edits, edit{kind: correctName, target: of, say: fmt.Sprintf("have request %s of claim %s want the class %s in place of %s", request, c.Name, meant, wrong),
			ops: []Op{{Op: "replace", Path: path + "/deviceClassName", Value: meant}}})
	}
	for i, r := range c.API.Spec.Devices.Requests {
		path := at("/spec/devices/requests/%d", i)
		if r.Exactly != nil && r.Exactly.DeviceClassName == wrong {
			correct(r.Name, path+"/exactly")
		}
		for j, sub := range r.FirstAvailable {
			if sub.DeviceClassName == wrong {
				correct(r.Name+"/"+sub.Name, at("%s/firstAvailable/%d", path, j))
			}
		}
	}
	return edits
}

// MeantTopologyKey returns the key of nodes' labels that somebody may mean whose topology key no
// node has: that of a new name, or else the first that is similar; "" if there is none.
func MeantTopologyKey(key string, set *manifest.Set) (meant string) {
	for _, n := range set.Nodes {
		if _, has := n.Labels[key]; has {
			return ""
		}
	}
	looked := map[string]bool{}
	for _, n := range set.Nodes {
		for k := range n.Labels { // any order: the first by name counts
			if looked[k] {
				continue
			}
			looked[k] = true
			if k == successors[key] {
				return k
			}
			if similarKey(key, k) && (meant == "" || k < meant) {
				meant = k
			}
		}
	}
	return meant
}

// similarKey reports whether two keys of labels are near, or differ in their domains alone.
func similarKey(a, b string) bool { return spelling.Near(a, b) || path.Base(a) == path.Base(b) }

// meantKeys corrects topology keys that no node has, in required terms of the pod.
func meantKeys(spec *v1.PodSpec, set *manifest.Set) (edits []edit) {
	looked := 0
	correct := func(key, path, what string) {
		if looked++; looked > mostMeant {
			return
		}
		if meant := MeantTopologyKey(key, set); meant != "" {
			edits = append(edits, edit{kind: correctName, say: fmt.Sprintf("have %s go by %s in place of %s", what, meant, key),
				ops: []Op{{Op: "replace", Path: path + "/topologyKey", Value: meant}}})
		}
	}
	for i := range spec.TopologySpreadConstraints {
		if c := &spec.TopologySpreadConstraints[i]; c.WhenUnsatisfiable == v1.DoNotSchedule {
			correct(c.TopologyKey, at("/spec/topologySpreadConstraints/%d", i), "the topology spread")
		}
	}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		for i, t := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			correct(t.TopologyKey, at(requiredPods+"/%d", "podAffinity", i), "the required pod affinity to "+podTerm(&t))
		}
	}
	return edits
}

package recording

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/dynamicresources"
	"github.com/berth-scheduler/berth/edge/decode"
)

// Names replaces names by keyed hashes: one name by one hash, wherever it stands,
// so that what selects what stays the same. Hashes have another order than names, but
// no decision goes by the order of names: UIDs decide between equals.
//
// A name is replaced part by part between hyphens and underscores, as some names are
// made of others: the claim of an ephemeral volume is called like its pod, a hyphen
// and the volume, and the zones of a volume are joined by underscores.
//
// A value of a label that would become too long by that is replaced as a whole: what
// selects it would not be valid.
//
// What stays as it is: keys of labels and taints, names of resources, of built-in priority classes, schedulers,
// drivers and provisioners, parts that are whole numbers, true or false (they may
// be compared as such), UIDs, tags and digests of images, the ids of disks in clouds,
// and all that describes devices.
type Names struct {
	key  []byte
	mu   sync.Mutex
	seen map[string]string // hashes made already
}

// NewNames returns names by the key.
func NewNames(key []byte) *Names { return &Names{key: key, seen: map[string]string{}} }

// keptHashes is how many hashes are remembered.
const keptHashes = 1 << 16

// Of is what stands for the name. A nil *Names replaces nothing.
func (n *Names) Of(name string) string {
	if n == nil || name == "" || plain(name) {
		return name
	}
	var b strings.Builder
	for part := range strings.FieldsFuncSeq(name, separates) {
		at := strings.Index(name, part)
		b.WriteString(name[:at])
		b.WriteString(n.part(part))
		name = name[at+len(part):]
	}
	return b.String() + name
}

// claimOf is what stands for the name of a claim of the pod: one that the scheduler
// made is called as it would call it if the pod had the name that it has here.
func (n *Names) claimOf(pod, claim string) string {
	if n == nil {
		return claim
	}
	suffix := claim[max(0, len(claim)-dynamicresources.MadeSuffix):]
	if claim != dynamicresources.MadeName(pod, suffix) {
		return n.Of(claim)
	}
	return dynamicresources.MadeName(n.Of(pod), suffix)
}

func separates(r rune) bool { return r == '-' || r == '_' }

func (n *Names) part(name string) string {
	if name == "" || plain(name) {
		return name
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if hash, ok := n.seen[name]; ok {
		return hash
	}
	mac := hmac.New(sha256.New, n.key)
	mac.Write([]byte(name))
	hash := "x" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(mac.Sum(nil)[:8]))
	if len(n.seen) >= keptHashes {
		clear(n.seen)
	}
	n.seen[name] = hash
	return hash
}

// plain tells values that say something to the scheduler by themselves.
func plain(name string) bool {
	if name == "true" || name == "false" {
		return true
	}
	_, err := strconv.ParseInt(name, 10, 64)
	return err == nil
}

// image keeps what tells whether a reference has a tag.
func (n *Names) image(reference string) string {
	at := strings.LastIndexByte(reference, ':')
	if at <= strings.LastIndexByte(reference, '/') {
		return n.Of(reference)
	}
	return n.Of(reference[:at]) + reference[at:]
}

// keptFields are fields of type string that stay as they are, by name.
var keptFields = map[string]bool{
	"Key": true, "TopologyKey": true, "APIVersion": true, "Kind": true, "SchedulerName": true, "Reason": true,
	"Driver": true, "Provisioner": true, "Attacher": true, "FSType": true, "Resource": true, "MatchLabelKeys": true, "MismatchLabelKeys": true,
	"TopologyKeys": true, "DeclaredFeatures": true, "Finalizers": true,
}

// Redact replaces the names in an API object, and leaves out who wrote it.
func (n *Names) Redact(o metav1.Object) {
	o.SetManagedFields(nil)
	o.SetAnnotations(keepAnnotations(o.GetAnnotations()))
	if a, is := o.(api); is {
		n.redact(a)
	} else {
		n.walk(reflect.ValueOf(o).Elem(), "")
	}
}

// redact replaces the names in a copy that keep made.
func (n *Names) redact(o api) {
	switch o := o.(type) {
	case *resourcev1.ResourceSlice:
		n.redactSlice(o)
	case *resourcev1.DeviceClass, *resourcev1.DeviceTaintRule, *storagev1.CSIDriver: // pools and devices keep their names in slices and claims, too
	case *resourcev1.ResourceClaim:
		n.redactClaim(o)
	case *decode.ElasticQuota:
		n.redactQuota(o)
	case *decode.PodGroup:
		name := o.Name
		n.walk(reflect.ValueOf(&o.ObjectMeta).Elem(), "")
		if validValue(name) { // labels of pods name it
			o.Name = n.value(name)
		}
		o.Redact()
	case *v1.Pod:
		n.redactPod(o)
	case *v1.PersistentVolume:
		n.redactVolume(o)
	default:
		n.walk(reflect.ValueOf(o).Elem(), "")
	}
}

func (n *Names) redactClaim(c *resourcev1.ResourceClaim) {
	name := n.Of(c.Name)
	if len(c.OwnerReferences) == 1 {
		name = n.claimOf(c.OwnerReferences[0].Name, c.Name)
	}
	n.walk(reflect.ValueOf(c).Elem(), "")
	c.Name = name
}

// redactQuota replaces names and what cannot be read, and leaves amounts. A parent stays the
// parent, and admits the same namespaces.
func (n *Names) redactQuota(q *decode.ElasticQuota) {
	namespace, name, named := strings.Cut(q.Annotations[object.ParentAnnotation], "/")
	parts := decode.Object(q).(*object.ElasticQuota).Parts
	n.walk(reflect.ValueOf(&q.ObjectMeta).Elem(), "")
	q.Spec.Min.Redact()
	q.Spec.Max.Redact()
	q.Status.Used.Redact()
	if named {
		q.Annotations[object.ParentAnnotation] = n.Of(namespace) + "/" + n.Of(name)
	}
	for i := range parts {
		if parts[i] != "*" {
			parts[i] = n.Of(parts[i])
		}
	}
	if len(parts) > 0 {
		q.Annotations[object.PartsAnnotation] = strings.Join(parts, ",")
	}
}

func (n *Names) redactPod(p *v1.Pod) {
	made := p.Status.ExtendedResourceClaimStatus
	pod := p.Name
	n.walk(reflect.ValueOf(p).Elem(), "")
	if made != nil { // the walk has put a copy in its place
		p.Status.ExtendedResourceClaimStatus.ResourceClaimName = n.claimOf(pod, made.ResourceClaimName)
	}
}

// redactVolume replaces the zones in a list one by one: nodes are labelled with one.
func (n *Names) redactVolume(v *v1.PersistentVolume) {
	was := v.Labels
	n.walk(reflect.ValueOf(v).Elem(), "")
	for _, key := range []string{v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion, v1.LabelTopologyZone, v1.LabelTopologyRegion} {
		if text, ok := was[key]; ok {
			zones := strings.Split(text, "__")
			for i := range zones {
				zones[i] = n.value(zones[i])
			}
			v.Labels[key] = strings.Join(zones, "__")
		}
	}
}

// redactSlice replaces what says on which nodes the devices are.
func (n *Names) redactSlice(s *resourcev1.ResourceSlice) {
	n.walk(reflect.ValueOf(&s.Spec.NodeName).Elem(), "")
	n.walk(reflect.ValueOf(&s.Spec.NodeSelector).Elem(), "")
	s.Spec.Devices = slices.Clone(s.Spec.Devices)
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		n.walk(reflect.ValueOf(&d.NodeName).Elem(), "")
		n.walk(reflect.ValueOf(&d.NodeSelector).Elem(), "")
	}
}

var stringType, quantityType = reflect.TypeFor[string](), reflect.TypeFor[resource.Quantity]()

// keptTypes are left alone: they hold no names, or some that mean something.
var keptTypes = map[reflect.Type]bool{
	quantityType: true, reflect.TypeFor[metav1.Time](): true, reflect.TypeFor[metav1.MicroTime](): true,
	reflect.TypeFor[resourcev1.DeviceClaim](): true, reflect.TypeFor[resourcev1.DeviceAllocationResult](): true,
	reflect.TypeFor[storagev1.CSINodeDriver]():             true,
	reflect.TypeFor[v1.AWSElasticBlockStoreVolumeSource](): true, reflect.TypeFor[v1.GCEPersistentDiskVolumeSource](): true,
	reflect.TypeFor[v1.AzureDiskVolumeSource](): true, reflect.TypeFor[v1.CinderVolumeSource](): true,
	reflect.TypeFor[v1.CinderPersistentVolumeSource](): true, reflect.TypeFor[v1.PortworxVolumeSource](): true,
}

// walk replaces what is under the field. What the copy shares with the API object
// is copied before.
func (n *Names) walk(v reflect.Value, field string) {
	if keptTypes[v.Type()] {
		return
	}
	switch v.Kind() {
	case reflect.String:
		if v.Type() == stringType && !keptFields[field] {
			v.SetString(n.text(field, v.String()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				n.walk(f, fieldIn(field, v.Type().Field(i).Name))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			own := reflect.New(v.Type().Elem())
			own.Elem().Set(v.Elem())
			n.walk(own.Elem(), field)
			v.Set(own)
		}
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		for i := range own.Len() {
			n.walk(own.Index(i), field)
		}
		v.Set(own)
	case reflect.Map:
		n.walkMap(v, field)
	}
}

// fieldIn returns what the field of a struct is known as in walk. outer is the field that
// holds the struct: values in MatchFields are names, not values of labels.
func fieldIn(outer, field string) string {
	if outer == "MatchFields" && field == "Values" {
		return outer
	}
	return field
}

// plainAnnotations have values that name no object: plugins, and keys of labels.
var plainAnnotations = []string{v1.MigratedPluginsAnnotationKey, object.RequiredTopology, object.PreferredTopology}

// walkMap replaces values; keys only where they are names.
func (n *Names) walkMap(v reflect.Value, field string) {
	if v.IsNil() || v.Type().Elem() == quantityType {
		return
	}
	own := reflect.MakeMapWithSize(v.Type(), v.Len())
	for it := v.MapRange(); it.Next(); {
		key, value := it.Key(), reflect.New(v.Type().Elem()).Elem()
		value.Set(it.Value())
		if field == "DisruptedPods" {
			key = reflect.ValueOf(n.Of(key.String()))
		}
		if !slices.Contains(plainAnnotations, key.String()) {
			n.walk(value, field)
		}
		own.SetMapIndex(key, value)
	}
	v.Set(own)
}

// labelFields are the fields that hold values of labels, or select such.
var labelFields = map[string]bool{"Labels": true, "MatchLabels": true, "NodeSelector": true, "Selector": true, "Values": true}

// value replaces a label's value. The scheduler passes over selectors with values that
// are not valid: what stands for a value is valid if the value is.
func (n *Names) value(s string) string {
	of := n.Of(s)
	switch was, is := validValue(s), validValue(of); {
	case was && !is: // too long
		return n.part(s)
	case is && !was:
		return "!" + of
	}
	return of
}

func validValue(s string) bool { return len(validation.IsValidLabelValue(s)) == 0 }

// group is what stands for the name of a pod group (object.GroupName): the rest of a name that
// has a source is a value of a label.
func (n *Names) group(name string) string {
	source, rest := object.GroupSource(name)
	if source == "" {
		return n.Of(rest)
	}
	return object.GroupName(source, n.value(rest))
}

func (n *Names) text(field, s string) string {
	if labelFields[field] {
		return n.value(s)
	}
	switch s {
	case "system-node-critical", "system-cluster-critical": // classes that every cluster has
		return s
	}
	switch field {
	case "Image", "Names", "Reference":
		return n.image(s)
	case "HostIP":
		if ip := net.ParseIP(s); ip == nil || ip.IsUnspecified() || ip.IsLoopback() {
			return s
		}
	case "Message":
		return ""
	}
	return n.Of(s)
}

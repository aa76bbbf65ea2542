package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"
)

type clientKey struct{}

// As has requests with the context come from the named client.
func As(ctx context.Context, by string) context.Context {
	return context.WithValue(ctx, clientKey{}, by)
}

// By is from whom a request comes.
func By(ctx context.Context) string {
	by, _ := ctx.Value(clientKey{}).(string)
	return by
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/version" && s.Version != nil {
		_ = json.NewEncoder(w).Encode(version.Info{GitVersion: s.Version()}) // to memory
		return
	}
	f := formatOf(r)
	t, known := parse(r.URL.Path)
	if !known {
		f.refuse(w, apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path))
		return
	}
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && query.Get("watch") != "" && query.Get("watch") != "false":
		s.watch(w, r, t)
	case r.Method == http.MethodGet && t.name == "":
		s.list(w, r, t)
	default:
		code, o, err := s.answer(r, t)
		if err != nil {
			f.refuse(w, err)
			return
		}
		f.answer(w, code, o)
	}
}

var success = StatusObject(metav1.Status{Status: metav1.StatusSuccess})

// answer carries out a request for one object.
func (s *Server) answer(r *http.Request, t target) (int, runtime.Object, error) {
	var body Object
	var patch []byte
	var err error
	switch {
	case r.Method == http.MethodPatch:
		patch, err = io.ReadAll(r.Body)
	case r.Method == http.MethodPost && t.subresource == "binding":
		body, err = decodeBody(r, v1.SchemeGroupVersion.WithKind("Binding"))
	case r.Method == http.MethodPost || r.Method == http.MethodPut:
		body, err = decodeBody(r, t.kind.gvk())
	case r.Method == http.MethodDelete:
		patch, err = io.ReadAll(r.Body)
	}
	if err != nil {
		return 0, nil, err
	}
	if l, ok := body.(*coordinationv1.Lease); ok && s.Skew != nil {
		shift(l, s.Skew(By(r.Context())))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodPost && t.subresource == "" {
		body.SetNamespace(t.namespace)
		o, err := s.create(t.kind, body, By(r.Context()))
		return http.StatusCreated, o, err
	}
	before := s.objects[t.kind.key()][types.NamespacedName{Namespace: t.namespace, Name: t.name}]
	if before == nil {
		return 0, nil, apierrors.NewNotFound(t.kind.resource.GroupResource(), t.name)
	}
	switch r.Method {
	case http.MethodGet:
		return http.StatusOK, before, nil
	case http.MethodPut:
		return s.put(t, before, body, By(r.Context()))
	case http.MethodPatch:
		return s.patch(r, t, before, patch)
	case http.MethodDelete:
		return s.delete(t, before, patch, By(r.Context()))
	case http.MethodPost:
		if b, ok := body.(*v1.Binding); ok {
			return s.bind(t, before.(*v1.Pod), b, By(r.Context()))
		}
	}
	return 0, nil, apierrors.NewMethodNotSupported(t.kind.resource.GroupResource(), r.Method)
}

// shift shifts the times that a lease says.
func shift(l *coordinationv1.Lease, by time.Duration) {
	for _, t := range []**metav1.MicroTime{&l.Spec.AcquireTime, &l.Spec.RenewTime} {
		if *t != nil && by != 0 {
			*t = &metav1.MicroTime{Time: (*t).Add(by)}
		}
	}
}

func (s *Server) put(t target, before, after Object, by string) (int, runtime.Object, error) {
	if v := after.GetResourceVersion(); v != "" && v != before.GetResourceVersion() {
		return 0, nil, conflict(t, "the object has been modified; please apply your changes to the latest version and try again")
	}
	after.GetObjectKind().SetGroupVersionKind(t.kind.gvk())
	after.SetCreationTimestamp(before.GetCreationTimestamp())
	return http.StatusOK, s.replace(t.kind.key(), before, after, by), nil
}

func conflict(t target, why string) error {
	return apierrors.NewConflict(t.kind.resource.GroupResource(), t.name, fmt.Errorf("%s", why))
}

// patch applies a merge patch of one of the two kinds.
func (s *Server) patch(r *http.Request, t target, before Object, patch []byte) (int, runtime.Object, error) {
	original, err := json.Marshal(before)
	if err != nil {
		return 0, nil, err
	}
	empty, err := served.New(t.kind.gvk())
	if err != nil {
		return 0, nil, err
	}
	var patched []byte
	switch types.PatchType(r.Header.Get("Content-Type")) {
	case types.StrategicMergePatchType:
		patched, err = strategicpatch.StrategicMergePatch(original, patch, empty)
	case types.MergePatchType:
		patched, err = jsonpatch.MergePatch(original, patch)
	default:
		return 0, nil, apierrors.NewBadRequest("unknown type of patch")
	}
	if err == nil {
		err = json.Unmarshal(patched, empty)
	}
	if err != nil {
		return 0, nil, apierrors.NewBadRequest(err.Error())
	}
	after := empty.(Object)
	if after.GetUID() != before.GetUID() {
		return 0, nil, apierrors.NewInvalid(t.kind.gvk().GroupKind(), t.name,
			field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), after.GetUID(), "field is immutable")})
	}
	if after.GetResourceVersion() != before.GetResourceVersion() {
		return 0, nil, conflict(t, "the object has been modified; please apply your changes to the latest version and try again")
	}
	if claim, ok := after.(*resourcev1.ResourceClaim); ok {
		if err := validateClaim(claim, before.(*resourcev1.ResourceClaim)); err != nil {
			return 0, nil, err
		}
	}
	if pod, ok := after.(*v1.Pod); ok && t.subresource == "status" {
		status := pod.Status
		pod = before.DeepCopyObject().(*v1.Pod)
		pod.Status = status
		after = pod
	}
	return http.StatusOK, s.replace(t.kind.key(), before, after, By(r.Context())), nil
}

// validateClaim refuses what a claim of devices may not come to be: reserved without
// an allocation, or with another one than before.
func validateClaim(after, before *resourcev1.ResourceClaim) error {
	status, was := &after.Status, &before.Status
	path := field.NewPath("status")
	var errs field.ErrorList
	if len(status.ReservedFor) > 0 && status.Allocation == nil {
		errs = append(errs, field.Forbidden(path.Child("reservedFor"), "may not be specified when `allocated` is not set"))
	}
	if was.Allocation != nil && status.Allocation != nil && !equality.Semantic.DeepEqual(was.Allocation, status.Allocation) {
		errs = append(errs, field.Invalid(path.Child("allocation"), "", "field is immutable"))
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(resourcev1.SchemeGroupVersion.WithKind("ResourceClaim").GroupKind(), after.Name, errs)
}

// delete deletes an object. A pod that is bound is only marked: its kubelet lets
// it end.
func (s *Server) delete(t target, before Object, body []byte, by string) (int, runtime.Object, error) {
	options := &metav1.DeleteOptions{}
	if len(body) > 0 {
		if _, _, err := codecs.UniversalDeserializer().Decode(body, nil, options); err != nil {
			return 0, nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != before.GetUID() {
		return 0, nil, conflict(t, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", *p.UID, before.GetUID()))
	}
	pod, isPod := before.(*v1.Pod)
	if !isPod || pod.Spec.NodeName == "" {
		s.remove(t.kind.key(), before, by)
		return http.StatusOK, success, nil
	}
	if pod.DeletionTimestamp == nil {
		pod = pod.DeepCopy()
		seconds := int64(30)
		if g := pod.Spec.TerminationGracePeriodSeconds; g != nil {
			seconds = *g
		}
		ends := metav1.NewTime(time.Now().Add(time.Duration(seconds) * time.Second).Truncate(time.Second))
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &ends, &seconds
		s.replace(t.kind.key(), before, pod, by)
	}
	return http.StatusOK, success, nil
}

// bind binds a pod once.
func (s *Server) bind(t target, before *v1.Pod, b *v1.Binding, by string) (int, runtime.Object, error) {
	switch {
	case b.UID != "" && b.UID != before.UID:
		return 0, nil, conflict(t, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", b.UID, before.UID))
	case before.DeletionTimestamp != nil:
		return 0, nil, conflict(t, fmt.Sprintf("pod %s is being deleted, cannot be assigned to a host", before.Name))
	case before.Spec.NodeName != "":
		return 0, nil, conflict(t, fmt.Sprintf("pod %s is already assigned to node %q", before.Name, before.Spec.NodeName))
	case len(before.Spec.SchedulingGates) > 0:
		return 0, nil, conflict(t, fmt.Sprintf("pod %s has non-empty .spec.schedulingGates", before.Name))
	}
	pod := before.DeepCopy()
	pod.Spec.NodeName = b.Target.Name
	pod.Status.NominatedNodeName = ""
	SetScheduled(pod, time.Now())
	s.replace(t.kind.key(), before, pod, by)
	return http.StatusCreated, success, nil
}

// SetScheduled sets the condition PodScheduled to True.
func SetScheduled(p *v1.Pod, now time.Time) {
	scheduled := v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))}
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == v1.PodScheduled {
			p.Status.Conditions[i] = scheduled
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, scheduled)
}

func number(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(err.Error())
	}
	return n, nil
}

package access

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Reader is the user of a request. A nil Reader may see everything: nobody guards the
// answer.
type Reader struct {
	user       user.Info
	authorizer authorizer.Authorizer
	narrow     bool // he may see a pod, and not the path
}

// key is the context key of a Reader.
type key struct{}

// From returns the Reader of a request. It is nil if requests are not authorized.
func From(ctx context.Context) *Reader {
	r, _ := ctx.Value(key{}).(*Reader)
	return r
}

// With returns a context with the reader.
func With(ctx context.Context, r *Reader) context.Context { return context.WithValue(ctx, key{}, r) }

// New returns a new Reader for u. narrow restricts it to what is about one pod.
func New(u user.Info, a authorizer.Authorizer, narrow bool) *Reader { return &Reader{u, a, narrow} }

// Narrow reports whether the user may see only what is about one pod.
func (r *Reader) Narrow() bool { return r != nil && r.narrow }

// MayGetPath reports whether the user may get a path of the endpoint.
func (r *Reader) MayGetPath(ctx context.Context, path string) bool {
	return r.may(ctx, authorizer.AttributesRecord{Verb: "get", Path: path})
}

// MayGetPod reports whether the user may get the pod.
func (r *Reader) MayGetPod(ctx context.Context, pod types.NamespacedName) bool {
	return r.may(ctx, authorizer.AttributesRecord{Verb: "get", APIVersion: "v1", Resource: "pods", Namespace: pod.Namespace, Name: pod.Name, ResourceRequest: true})
}

// SeesPodsOf reports whether the user may see the names of all pods of the namespace.
func (r *Reader) SeesPodsOf(ctx context.Context, namespace string) bool {
	return !r.Narrow() || r.may(ctx, authorizer.AttributesRecord{Verb: "list", APIVersion: "v1", Resource: "pods", Namespace: namespace, ResourceRequest: true})
}

// may asks. Where there is no answer, the user may not.
func (r *Reader) may(ctx context.Context, a authorizer.AttributesRecord) bool {
	if r == nil {
		return true
	}
	a.User = r.user
	decision, _, err := r.authorizer.Authorize(ctx, a)
	return err == nil && decision == authorizer.DecisionAllow
}

// Guard serves each request with its reader in the context. A request goes to whole, which
// refuses whoever may not get the path, unless it is about one pod that the user may get.
// Then it goes to h. about returns the pod that a request is about. Of anonymous users the
// API server is asked nothing more.
func Guard(h, whole http.Handler, a authorizer.Authorizer, about func(*http.Request) (pod types.NamespacedName, ok bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, known := request.UserFrom(r.Context())
		if !known {
			whole.ServeHTTP(w, r)
			return
		}
		ctx := r.Context()
		reader := New(u, a, false)
		if pod, ok := about(r); ok && r.Method == http.MethodGet && u.GetName() != user.Anonymous && !reader.MayGetPath(ctx, r.URL.Path) && reader.MayGetPod(ctx, pod) {
			h.ServeHTTP(w, r.WithContext(With(ctx, New(u, a, true))))
			return
		}
		whole.ServeHTTP(w, r.WithContext(With(ctx, reader)))
	})
}

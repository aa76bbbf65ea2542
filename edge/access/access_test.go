package access

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// rights are what users may do: "ann get /path", "ann get pod shop/cart", "ann list pods shop".
type rights map[string]bool

func (r rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	what := a.GetUser().GetName() + " " + a.GetVerb() + " "
	switch {
	case !a.IsResourceRequest():
		what += a.GetPath()
	case a.GetName() != "":
		what += "pod " + a.GetNamespace() + "/" + a.GetName()
	default:
		what += a.GetResource() + " " + a.GetNamespace()
	}
	if r[what] {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// Whoever may get the path is served whole. Whoever may get the pod that is asked about is
// served narrowly, by GET alone, and sees the pods of namespaces whose pods he may list.
// All others are refused.
func TestGuard(t *testing.T) {
	may := rights{"ann get /why": true, "bob get pod shop/cart": true, "bob list pods shop": true, "eve get pod shop/other": true, user.Anonymous + " get pod shop/cart": true}
	about := func(r *http.Request) (types.NamespacedName, bool) {
		return types.NamespacedName{Namespace: "shop", Name: "cart"}, r.URL.Path == "/why"
	}
	served := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		who := From(r.Context())
		if sees := who.SeesPodsOf(r.Context(), "shop"); !sees {
			t.Error("pods of the own namespace are hidden")
		}
		if got := who.SeesPodsOf(r.Context(), "infra"); got == who.Narrow() {
			t.Errorf("sees pods of infra: %t, narrow %t", got, who.Narrow())
		}
	})
	whole := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if From(r.Context()).MayGetPath(r.Context(), r.URL.Path) {
			served(w, r)
			return
		}
		w.WriteHeader(http.StatusForbidden)
	})
	h := Guard(served, whole, authorizer.AuthorizerFunc(may.Authorize), about)
	for _, c := range []struct {
		user, method, path string
		code               int
	}{
		{"ann", "GET", "/why", 200}, {"bob", "GET", "/why", 200}, {"eve", "GET", "/why", 403}, {"bob", "GET", "/summary", 403}, {"bob", "POST", "/why", 403},
		{user.Anonymous, "GET", "/why", 403},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(c.method, c.path, nil)
		h.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: c.user})))
		if w.Code != c.code {
			t.Errorf("%s %s %s: %d, want %d", c.user, c.method, c.path, w.Code, c.code)
		}
	}
	if !From(t.Context()).SeesPodsOf(t.Context(), "infra") {
		t.Error("without a guard something is hidden")
	}
}

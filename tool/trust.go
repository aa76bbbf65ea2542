package tool

import (
	"cmp"
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	leasev1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/edge/pin"
)

// trusted returns the leases of kube-system, and those elsewhere whose holder is a pod that may bind
// pods. Whoever may write leases and pods in one namespace can make both look like Berth's, and
// would be sent the user's credentials. The error says why another was left out.
func trusted(ctx context.Context, config *rest.Config, held []*leasev1.Lease) (of []*leasev1.Lease, left error) {
	core, err := corev1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	elsewhere := 0
	for _, l := range held {
		if l.Namespace == metav1.NamespaceSystem {
			of = append(of, l)
			continue
		}
		if elsewhere++; elsewhere > mostElsewhere {
			left = cmp.Or(left, fmt.Errorf("more than %d leases outside %s have the label %s", mostElsewhere, metav1.NamespaceSystem, pin.Label))
			continue
		}
		pod, err := podOf(ctx, core, l.Namespace, *l.Spec.HolderIdentity)
		if err == nil {
			err = mayBind(ctx, config, pod)
		}
		if err != nil {
			left = cmp.Or(left, fmt.Errorf("the lease %s/%s is not taken for a scheduler's: %w", l.Namespace, l.Name, err))
			continue
		}
		of = append(of, l)
	}
	return of, left
}

// mayBind returns an error unless the service account of the pod may bind pods of all namespaces, as
// a scheduler's may: a right that nobody can give himself.
func mayBind(ctx context.Context, config *rest.Config, p *v1.Pod) error {
	if p.Spec.ServiceAccountName == "" {
		return fmt.Errorf("its holder, pod %s/%s, has no service account", p.Namespace, p.Name)
	}
	client, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return err
	}
	review, err := client.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               serviceaccount.MakeUsername(p.Namespace, p.Spec.ServiceAccountName),
		Groups:             append(serviceaccount.MakeGroupNames(p.Namespace), "system:authenticated"),
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Version: "v1", Resource: "pods", Subresource: "binding"},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("whether its holder, pod %s/%s, may bind pods is not known: %w; if Berth runs there, name its lease with --lease", p.Namespace, p.Name, err)
	case !review.Status.Allowed:
		return fmt.Errorf("its holder, pod %s/%s, may not bind pods", p.Namespace, p.Name)
	}
	return nil
}

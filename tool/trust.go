package tool

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// mayBind returns an error unless the service account of the pod may bind pods of all
// namespaces, as a scheduler's may. Whoever may write leases and pods in one namespace can
// make both look like Berth's, and would be sent the user's credentials. That right nobody
// can give himself.
func mayBind(ctx context.Context, config *rest.Config, p *v1.Pod) error {
	if p.Spec.ServiceAccountName == "" {
		return errors.New("it has no service account")
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
		return fmt.Errorf("whether its service account %s may bind pods is not known: %w", p.Spec.ServiceAccountName, err)
	case !review.Status.Allowed:
		return fmt.Errorf("its service account %s may not bind pods", p.Spec.ServiceAccountName)
	}
	return nil
}

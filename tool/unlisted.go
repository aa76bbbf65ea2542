package tool

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// unlisted returns a function that reports whether the user may not list the pods of a namespace.
// Events of the user's own pods name pods of other namespaces. The API server is asked once about
// each namespace; where it gives no answer, its pods stay hidden.
func unlisted(ctx context.Context, config *rest.Config) func(namespace string) bool {
	client, err := authorizationclient.NewForConfig(config)
	known := map[string]bool{}
	return func(namespace string) bool {
		if hides, asked := known[namespace]; asked {
			return hides
		}
		known[namespace] = true
		if err != nil {
			return true
		}
		review, failed := client.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "list", Version: "v1", Resource: "pods"},
		}}, metav1.CreateOptions{})
		known[namespace] = failed != nil || !review.Status.Allowed
		return known[namespace]
	}
}

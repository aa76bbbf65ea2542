package bench

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// createVolumes creates the volumes of the step's pods and their claims, bound
// to each other: no controller has to come by.
func (s *stage) createVolumes(ctx context.Context, step *CreatePods) error {
	claims, volumes, err := step.Volumes()
	if err != nil {
		return err
	}
	core := s.client.CoreV1()
	err = concurrently(ctx, creators, len(claims), func(i int) error {
		claim, volume := claims[i], volumes[i]
		in := core.PersistentVolumeClaims(claim.Namespace)
		if _, err := in.Create(ctx, claim, metav1.CreateOptions{}); err != nil {
			return err
		}
		if _, err := in.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
			return err
		}
		if _, err := core.PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}); err != nil {
			return err
		}
		_, err := core.PersistentVolumes().UpdateStatus(ctx, volume, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating volumes: %w", err)
	}
	return nil
}

// allocateClaims gives the claims of the namespace their devices.
func (s *stage) allocateClaims(ctx context.Context, step *AllocateClaims) error {
	api := s.client.ResourceV1()
	claims, err := api.ResourceClaims(step.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	offered, err := api.ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	classes, err := api.DeviceClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	all := pointers(claims.Items)
	if err := allocate(ctx, all, pointers(offered.Items), pointers(classes.Items), s.nodes); err != nil {
		return err
	}
	err = concurrently(ctx, creators, len(all), func(i int) error {
		_, err := api.ResourceClaims(step.Namespace).UpdateStatus(ctx, all[i], metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("allocating ResourceClaims: %w", err)
	}
	return nil
}

func pointers[T resourcev1.ResourceClaim | resourcev1.ResourceSlice | resourcev1.DeviceClass](list []T) []*T {
	all := make([]*T, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}

package service

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// defaults are the settings as the environment has them.
func (s Settings) defaults() cks.SettingDefaults {
	return cks.SettingDefaults{
		cks.SettingMaxSize:      strconv.Itoa(s.MaxSize),
		cks.SettingDrainTimeout: seconds(s.DrainTimeout),
		cks.SettingEndpointURL:  s.EndpointURL,
		cks.SettingEnforcePost:  strconv.FormatBool(s.EnforcePost),

		cks.SettingStartTimeout:   seconds(s.StartTimeout),
		cks.SettingScaleTimeout:   seconds(s.ScaleTimeout),
		cks.SettingUpgradeTimeout: seconds(s.UpgradeTimeout),
		cks.SettingAddTimeout:     seconds(cmp.Or(s.AddTimeout, s.ScaleTimeout)),
		cks.SettingRemoveTimeout:  seconds(cmp.Or(s.RemoveTimeout, s.ScaleTimeout)),
	}
}

func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }

// Settings lists settings by name, with how many there are on all pages.
func (s *Service) Settings(ctx context.Context, f cks.SettingFilter) ([]cks.Setting, int, error) {
	if f.AccountID != "" {
		account, err := s.store.AccountByID(ctx, f.AccountID)
		if err != nil {
			return nil, 0, unknown(err, "accountid", f.AccountID)
		}
		f.AccountID = account.ID
	}
	values, err := s.store.Settings(ctx, f.AccountID)
	if err != nil {
		return nil, 0, err
	}
	var found []cks.Setting
	for _, one := range cks.Settings(s.set.defaults()) {
		if !f.Matches(one) {
			continue
		}
		if v, set := values[one.Name]; set {
			one.Value = v
		}
		one.AccountID = f.AccountID
		found = append(found, one)
	}
	return cks.PageOf(f.Page, found), len(found), nil
}

// UpdateSetting changes a setting for everybody, or for an account, and returns
// it. Every server goes by it from then on, since all read it when they need it.
func (s *Service) UpdateSetting(ctx context.Context, caller cks.Account, name, value, accountID string) (cks.Setting, error) {
	list := cks.Settings(s.set.defaults())
	for _, one := range list {
		if !strings.EqualFold(one.Name, name) {
			continue
		}
		if accountID != "" {
			account, err := s.store.AccountByID(ctx, accountID)
			if err != nil {
				return one, unknown(err, "accountid", accountID)
			}
			one.AccountID = account.ID
		}
		plain, err := cks.CheckSetting(one, value, accountID)
		if err != nil {
			return one, err
		}
		one.Value = plain
		return one, s.store.SetSetting(ctx, one.Name, one.Value, one.AccountID, caller.ID)
	}
	return cks.Setting{}, cks.Errorf(cks.Invalid, "Config parameter with name %s doesn't exist", name)
}

// maxSize is the most workers and control nodes of a cluster of the owner's.
func (s *Service) maxSize(ctx context.Context, q *store.Queries, ownerID string) (int, error) {
	text, set, err := q.Setting(ctx, cks.SettingMaxSize, ownerID)
	if err != nil || !set {
		return s.set.MaxSize, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("setting %s: %w", cks.SettingMaxSize, err)
	}
	return n, nil
}

// endpointURL is where clusters reach the API.
func (s *Service) endpointURL(ctx context.Context, q *store.Queries) (string, error) {
	text, set, err := q.Setting(ctx, cks.SettingEndpointURL, "")
	if err != nil || !set {
		return s.set.EndpointURL, err
	}
	return text, nil
}

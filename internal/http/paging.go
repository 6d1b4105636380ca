package http

import (
	"strconv"

	"ckscale/internal/cks"
)

// checkPaging checks page and pagesize, which every list command has, and
// corrects page 0 to 1 (cks.md §2.6, A23).
func (c *command) checkPaging(args map[string]argument) error {
	if !c.has("page") || !c.has("pagesize") {
		return nil
	}
	page, paged, err := c.pagingNumber(args, "page", 0)
	if err != nil {
		return err
	}
	size, sized, err := c.pagingNumber(args, "pagesize", -1)
	switch {
	case err != nil:
		return err
	case paged && !sized:
		return cks.Errorf(cks.Parameter, `"pagesize" parameter is required when "page" is specified`)
	case sized && !paged && size != -1:
		return cks.Errorf(cks.Parameter, `"page" parameter is required when "pagesize" is specified`)
	case size > cks.DefaultPageSize:
		return c.refusePage("Page size can't exceed max allowed page size value: %d", cks.DefaultPageSize)
	case size == -1 && paged:
		return c.refusePage("Can't specify page parameter when pagesize is -1 (Unlimited)")
	case paged && page == 0:
		args["page"] = argument{value: "1"}
	}
	return nil
}

// pagingNumber reads one of the two; a blank one counts as not sent.
func (c *command) pagingNumber(args map[string]argument, name string, least int64) (n int64, sent bool, err error) {
	a := args[name]
	if a.value == "" {
		return 0, false, nil
	}
	if n, err = strconv.ParseInt(a.value, 10, 32); err != nil || n < least {
		return 0, false, c.badValue(param{Name: name}, a.value)
	}
	return n, true, nil
}

// refusePage has the code that depends on where CloudStack finds the mistake:
// listKubernetesClusters wraps it as an operation that failed.
func (c *command) refusePage(format string, args ...any) error {
	if c.Name == "listKubernetesClusters" {
		return cks.Errorf(cks.Failed, format, args...)
	}
	return cks.Errorf(cks.Invalid, format, args...)
}

# The image is the static binary that `make build` leaves in bin/; `make up`
# does both. No base image, so no registry is needed.
FROM scratch
COPY bin/server /server
# The generated keys; a volume on it takes over the owner.
COPY --chown=65532:65532 deploy/data /var/lib/ckscale
ENV CKSCALE_ADDR=0.0.0.0:8080 CKSCALE_DATA_DIR=/var/lib/ckscale
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s CMD ["/server", "healthcheck"]
ENTRYPOINT ["/server"]

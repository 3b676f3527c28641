# Shortcuts for common tasks; Meson does the work. `make help` lists the targets.
# B= benchmark, F= fuzz target, S= seconds to fuzz, PREFIX= installation prefix.
BUILD ?= build
PREFIX ?= /usr/local
DATA ?= $(shell if [ -d ../shared/data/images ]; then echo ../shared/data/images; fi)
S ?= 60
B ?= noop
F ?= graph
# As in .ci/run: with HEADRACE_WERROR=1 warnings of the build are errors, so check-werror needs no second one by gcc;
# with HEADRACE_ASSERTS=1 a release has its assertions.
setup = meson setup $(BUILD) --buildtype=release --prefix=$(PREFIX) $(if $(HEADRACE_WERROR),--werror) \
	$(if $(HEADRACE_ASSERTS),-Db_ndebug=false)
headrace = $(BUILD)/headrace
photos = $(BUILD)/demo/photos

.DEFAULT_GOAL := make-all
.PHONY: make-all help deps demo check check-adapters check-dataloader check-torchvision check-pythons check-freethreaded asan ubsan tsan asan-python tsan-python soak-resume soak-service nightly debug-python torture neon fuzz golden-update bench bench-against bench-peers \
	pixels format layers docs docs-site readme-pictures wheel wheels install clean

make-all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

help:
	@echo 'make                   build the library and the command in build/'
	@echo 'make demo              install dependencies, build, and run photos through a pipeline'
	@echo 'make check             build, run all tests and checks; ends with "N passed, N failed"'
	@echo 'make check-adapters    test the Python package with torch, Lightning, Trainer, JAX, TensorFlow, Ray'
	@echo 'make check-dataloader  run PyTorch'\''s and torchdata'\''s tests of their loaders through hr.DataLoader (FILES=)'
	@echo 'make check-torchvision  compare the transforms of images, masks and boxes with torchvision'\''s'
	@echo 'make check-pythons     test the wheel with this machine'\''s other CPythons'
	@echo 'make check-freethreaded  test the Python package on free-threaded CPython'
	@echo 'make asan ubsan tsan   run the tests under a sanitizer'
	@echo 'make asan-python       run the tests of the Python extension under ASan and UBSan'
	@echo 'make tsan-python       the same under TSan'
	@echo 'make debug-python      the same under a debug build of Python, checking reference counts'
	@echo 'make soak-resume       kill training runs, resume with other ranks, compare (TRIALS=50 SEED=)'
	@echo 'make soak-service      kill the processes of a service on a bad network, compare (KILLS=1000 SEED=; root for the network)'
	@echo 'make nightly           run thousands of random graphs and pipelines, the random tests again and again, and kill the service at its kill points (GRAPHS=10000 SEED= BUDGETS=300 EXAMPLES=2000 ROUNDS=20 KILLS=1000)'
	@echo 'make torture           make the n-th allocation, read, open or thread fail, for every n'
	@echo 'make neon              cross-build for aarch64 and run the pixel tests under qemu'
	@echo 'make fuzz F=graph S=60 fuzz a target for S seconds (make fuzz F=list)'
	@echo 'make golden-update     rewrite the golden files; review the diff'
	@echo 'make bench B=noop      run a benchmark (make bench B=list)'
	@echo 'make bench-against     compare noop, code, jpeg, simclr with another commit'\''s (COMMIT= NAMES= ROUNDS=7)'
	@echo 'make bench-peers       compare with DataLoader, tf.data and DALI'
	@echo 'make pixels            compare pixels with Pillow and torchvision on photos'
	@echo 'make format            clang-format the tree'
	@echo 'make layers            check which parts include which'
	@echo 'make docs              generate docs/ops and the Python functions from the operators'\'' tables'
	@echo 'make docs-site         build the documentation site in BUILD/site/html (MkDocs from PyPI)'
	@echo 'make wheel             build and test a self-contained Python wheel, in dist/'
	@echo 'make wheels            build and test the wheel that is published, with pinned codecs, in dist/'
	@echo 'make readme-pictures   draw the pictures of README.md'
	@echo 'make deps              list missing Debian packages and install them'
	@echo 'make install PREFIX=   install (default /usr/local)'
	@echo 'make clean             remove build output; keeps dist/ and downloads (build-peers, build-adapters, build-wheels)'

deps:
	@sh tools/deps.sh

$(BUILD)/build.ninja:
	@sh tools/deps.sh
	@$(setup)

demo: deps
	@test -e $(BUILD)/build.ninja || $(setup)
	@ninja -C $(BUILD) headrace
	@sh tools/demo $(BUILD)

check:
	@sh tools/deps.sh check
	@test -e $(BUILD)/build.ninja || $(setup)
	@meson configure $(BUILD) -Dpython=true
	@ninja -C $(BUILD)
	@tools/check $(BUILD)

# Frameworks of several gigabytes, in a separate environment.
check-adapters:
	@sh tools/deps.sh wheel
	@sh tools/check-adapters $(BUILD)

check-dataloader:
	@sh tools/deps.sh wheel
	@sh tools/check-dataloader $(BUILD) $(FILES)

check-torchvision:
	@sh tools/deps.sh check
	@test -e $(BUILD)/build.ninja || $(setup)
	@meson configure $(BUILD) -Dpython=true
	@ninja -C $(BUILD)
	@tools/check-torchvision $(BUILD)

check-pythons: wheel
	@sh tools/check-pythons

# Builds an interpreter from source once; uses a separate build folder.
check-freethreaded:
	@sh tools/deps.sh check
	@sh tools/check-freethreaded $(BUILD)-free

# A build folder per sanitizer; a release build would drop the asserts.
asan: sanitizer = address,undefined
ubsan: sanitizer = undefined
tsan: sanitizer = thread
asan ubsan tsan:
	@sh tools/deps.sh
	@test -e $(BUILD)-$@/build.ninja || \
	    meson setup $(BUILD)-$@ -Db_sanitize=$(sanitizer) -Db_lundef=false --buildtype=debugoptimized
	@ninja -C $(BUILD)-$@
	@UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.supp \
	    meson test -C $(BUILD)-$@ --print-errorlogs --timeout-multiplier 5

asan-python: sanitizer = address,undefined
tsan-python: sanitizer = thread
asan-python tsan-python: %-python:
	@sh tools/deps.sh check
	@test -e $(BUILD)-$*/build.ninja || \
	    meson setup $(BUILD)-$* -Db_sanitize=$(sanitizer) -Db_lundef=false --buildtype=debugoptimized
	@meson configure $(BUILD)-$* -Dpython=true
	@ninja -C $(BUILD)-$* python/_headrace.abi3.so headrace
	@sh tools/sanitize-python $* $(BUILD)-$* $(BUILD)

debug-python:
	@sh tools/deps.sh debug
	@test -e $(BUILD)-debug/build.ninja || \
	    meson setup $(BUILD)-debug -Dpython=true -Dtests=false -Dc_args=-DPy_DEBUG --buildtype=debugoptimized
	@ninja -C $(BUILD)-debug python/_headrace.abi3.so headrace
	@sh tools/debug-python $(BUILD)-debug

soak-resume:
	@sh tools/deps.sh check
	@test -e $(BUILD)/build.ninja || $(setup)
	@meson configure $(BUILD) -Dpython=true
	@ninja -C $(BUILD)
	@sh tools/soak-resume $(BUILD) --trials $(or $(TRIALS),50) $(if $(SEED),--seed $(SEED))

soak-service:
	@sh tools/deps.sh check
	@test -e $(BUILD)/build.ninja || $(setup)
	@ninja -C $(BUILD) headrace
	@python3 tests/e2e/service_soak.py $(BUILD)/headrace . --kills $(or $(KILLS),1000) $(if $(SEED),--seed $(SEED))

nightly:
	@sh tools/deps.sh check
	@test -e $(BUILD)-nightly/build.ninja || \
	    meson setup $(BUILD)-nightly -Db_lto=false --buildtype=debugoptimized
	@meson configure $(BUILD)-nightly -Dpython=true
	@ninja -C $(BUILD)-nightly
	@sh tools/nightly $(BUILD)-nightly

torture:
	@sh tools/deps.sh
	@test -e $(BUILD)-asan/build.ninja || \
	    meson setup $(BUILD)-asan -Db_sanitize=address,undefined -Db_lundef=false --buildtype=debugoptimized
	@ninja -C $(BUILD)-asan
	@sh tools/torture $(BUILD)-asan

# Skipped where apt has no arm64 packages.
neon: make-all
	@if sh tools/deps.sh neon; then tools/neon $(BUILD); \
	else echo 'neon: skipped, the packages are not available here'; echo '0 passed, 0 failed'; fi

fuzz:
	@sh tools/fuzz $(F) $(S)

golden-update: make-all
	@sh tools/golden-update $(BUILD)

bench: make-all
	@sh tools/bench $(BUILD) "$(B)" "$(DATA)"

# A build of each side in its own folder.
bench-against:
	@sh tools/deps.sh
	@tools/bench-against $(or $(COMMIT),$(error COMMIT= says which commit to compare with)) $(NAMES) \
	    --keep $(BUILD)-against --rounds $(or $(ROUNDS),7) $(BENCH_ARGS)

bench-peers: make-all
	@sh bench/peers/run.sh

pixels: make-all
	@BUILD=$(BUILD) DATA="$(DATA)" sh tests/pixels/run.sh

format:
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i

layers:
	@tools/check-layers

docs: make-all
	@mkdir -p docs/ops && rm -f docs/ops/*.md && $(headrace) ops --markdown docs/ops
	@tools/gen-python $(BUILD)

docs-site: make-all
	@tools/docs-site $(BUILD); status=$$?; [ $$status -eq 77 ] || exit $$status

wheel:
	@sh tools/deps.sh wheel
	@tools/wheel
	@tools/check-wheel

wheels:
	@sh tools/deps.sh wheels
	@tools/wheels

# Pillow comes from PyPI.
readme-pictures: make-all
	@python=$$(sh tools/python-env $(BUILD)/venv) && $$python -m pip install -qq --disable-pip-version-check pillow && \
	    $$python tools/readme-pictures $(BUILD)

install: make-all
	@meson configure $(BUILD) --prefix=$(PREFIX) && meson install -C $(BUILD)

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-ubsan $(BUILD)-tsan $(BUILD)-debug $(BUILD)-neon $(BUILD)-free $(BUILD)-fuzz $(BUILD)-nightly $(BUILD)-against $(BUILD)-wheel

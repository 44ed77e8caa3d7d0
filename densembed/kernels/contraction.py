"""A product of small matrices in vector registers, which LLVM does not find by itself.

Written in Numba, each sum would be read and stored at every step. Here a block of sums stays in
registers for the whole loop, so that the processor does nothing but multiply and add.
"""

from itertools import chain

from llvmlite import ir
from numba import types
from numba.core import cgutils

from densembed.kernels.compiler import intrinsic

LANES = 16
"""Densities per vector, to a multiple of which rows are padded: AVX-512 in float32."""
TILE = 4
"""Columns of the image that are multiplied at once."""
FUSED = ("contract",)
"""Flag that lets a product and a sum be one instruction."""
BLOCKS = (2, 1)
"""Vectors of densities that are multiplied at once: TILE times as many sums fit the registers."""


@intrinsic
def contract(typing, image, start, down, along, first, end, mass, seen):
    """Σ_r image[start + r · down + i · along] · mass[r], first ≤ r < end, for i < TILE.

    Args:
        image: any shape, contiguous; the index runs over its memory.
        mass: (rows, K), K a multiple of LANES.
        seen: (1 + TILE, K); the sums are written to its rows from 1.
    """
    whole = types.intp
    signature = types.void(image, whole, whole, whole, whole, whole, mass, seen)

    def generate(context, builder, signature, args):
        image_type, mass_type, seen_type = (signature.args[k] for k in (0, 6, 7))
        start, down, along, first, end = args[1:6]
        pixels = context.make_array(image_type)(context, builder, args[0]).data
        table = context.make_array(mass_type)(context, builder, args[6])
        sums = context.make_array(seen_type)(context, builder, args[7]).data
        number = context.get_data_type(mass_type.dtype)
        lanes = cgutils.unpack_tuple(builder, table.shape, 2)[1]
        vector = ir.VectorType(number, LANES)
        integer, align = lanes.type, number.get_abi_size(context.target_data)
        zero = ir.Constant(vector, None)

        def at(data, index):
            return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())

        def constant(value):
            return ir.Constant(integer, value)

        def block(lane, vectors):
            """All rows for some vectors of densities."""
            before = builder.block
            head = builder.append_basic_block("rows")
            done = builder.append_basic_block("rows.done")
            anything = builder.icmp_signed("<", first, end)
            builder.cbranch(anything, head, done)
            builder.position_at_end(head)
            row = builder.phi(integer)
            row.add_incoming(first, before)
            held = [[builder.phi(vector) for _ in range(vectors)] for _ in range(TILE)]
            place = builder.add(builder.mul(row, lanes), lane)
            masses = [
                builder.load(at(table.data, builder.add(place, constant(LANES * v))), align=align)
                for v in range(vectors)
            ]
            pixel = builder.add(start, builder.mul(row, down))
            following = []
            for i in range(TILE):
                value = builder.load(builder.gep(pixels, [pixel]))
                one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, constant(0))
                spread = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
                same = builder.shuffle_vector(one, one, spread)
                following.append(
                    [
                        builder.fadd(builder.fmul(same, mass, flags=FUSED), sum_, flags=FUSED)
                        for mass, sum_ in zip(masses, held[i], strict=True)
                    ]
                )
                pixel = builder.add(pixel, along)
            beyond = builder.add(row, constant(1))
            row.add_incoming(beyond, head)
            for old, new in zip(chain(*held), chain(*following), strict=True):
                old.add_incoming(zero, before)
                old.add_incoming(new, head)
            builder.cbranch(builder.icmp_signed("<", beyond, end), head, done)
            builder.position_at_end(done)
            for i in range(TILE):
                for v in range(vectors):
                    total = builder.phi(vector)
                    total.add_incoming(zero, before)
                    total.add_incoming(following[i][v], head)
                    held[i][v] = total
            for i in range(TILE):
                place = builder.add(builder.mul(constant(1 + i), lanes), lane)
                for v in range(vectors):
                    there = at(sums, builder.add(place, constant(LANES * v)))
                    builder.store(held[i][v], there, align=align)

        lane = cgutils.alloca_once_value(builder, constant(0))
        for vectors in BLOCKS:
            width = constant(vectors * LANES)
            fits = builder.append_basic_block("block.fits")
            body = builder.append_basic_block("block")
            after = builder.append_basic_block("block.after")
            builder.branch(fits)
            builder.position_at_end(fits)
            reached = builder.add(builder.load(lane), width)
            builder.cbranch(builder.icmp_signed("<=", reached, lanes), body, after)
            builder.position_at_end(body)
            block(builder.load(lane), vectors)
            builder.store(builder.add(builder.load(lane), width), lane)
            builder.branch(fits)
            builder.position_at_end(after)
        return context.get_dummy_value()

    return signature, generate

//! Interns shapes, faster than a hash map does.

use crate::loggops::{Shape, Shapes};

const SLOTS: usize = 64;

/// [`Shapes`] behind a small direct-mapped cache: a program uses few shapes again and again.
#[derive(Clone, Debug)]
pub(super) struct Interner {
    shapes: Shapes,
    slots: Box<[Option<(Shape, u32)>; SLOTS]>,
}

impl Interner {
    pub(super) fn new() -> Self {
        Self { shapes: Shapes::default(), slots: Box::new([None; SLOTS]) }
    }

    /// The number of a shape; a new number if the shape was not seen before.
    pub(super) fn number(&mut self, shape: Shape) -> u32 {
        let slot = &mut self.slots[slot_of(&shape)];
        match slot {
            Some((known, number)) if *known == shape => *number,
            _ => {
                let number = self.shapes.number(shape);
                *slot = Some((shape, number));
                number
            }
        }
    }

    pub(super) fn into_list(self) -> Vec<Shape> {
        let mut list = self.shapes.into_list();
        list.shrink_to_fit();
        list
    }
}

fn slot_of(shape: &Shape) -> usize {
    let small = (u64::from(shape.tag) << 8) ^ (shape.kind as u64) ^ (u64::from(shape.cpu) << 2);
    let mixed = (shape.size ^ small.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - SLOTS.trailing_zeros())) as usize
}
